"""Numbers as people type them: `10e9`, `10B`, `3.2T`."""

from decimal import Decimal

from gateway.errors import Refused

_LETTERS = {"k": 3, "m": 6, "b": 9, "g": 9, "t": 12}
_LONGEST = 40


def count(field: str, text: str) -> float:
    """The number; whether it can be is judged by the planner. Refused: plan_number."""
    typed, zeros = text.strip().replace(",", ""), 0
    if typed[-1:].casefold() in _LETTERS:
        typed, zeros = typed[:-1], _LETTERS[typed[-1:].casefold()]
    if len(typed) > _LONGEST:
        raise Refused("plan_number", field=field)
    try:
        return float(Decimal(typed).scaleb(zeros))
    except (ArithmeticError, ValueError) as error:
        raise Refused("plan_number", field=field) from error


def whole_count(field: str, text: str) -> int:
    """The same without a fraction. Refused: plan_number, plan_whole."""
    number = count(field, text)
    try:
        whole = int(number)
    except (OverflowError, ValueError) as error:  # infinities, and what is no number
        raise Refused("plan_number", field=field) from error
    if whole != number:
        raise Refused("plan_whole", field=field)
    return whole
