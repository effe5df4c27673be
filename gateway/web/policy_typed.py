"""Fields of policy as they are typed: from a value to the texts of its inputs, and back."""

import re
from collections.abc import Mapping
from decimal import Decimal

from werkzeug.datastructures import MultiDict

from gateway.core.credits import MILLION
from gateway.core.durations import BadTimeLimit, format_time_limit, parse_seconds
from gateway.core.qos import Field, Kind, TresLimit, Value
from gateway.core.qos_checks import MOST_TRES
from gateway.errors import Refused
from gateway.web.policy_words import MIB_PER_GIB, decimal

Sent = MultiDict[str, str]
RESOURCE, NUMBER = ".resource", ".number"  # after a field's key: its rows

_WHOLE = re.compile(r"\d+", re.ASCII)
_DECIMAL = re.compile(r"\d+(\.\d*)?|\.\d+", re.ASCII)
_LONGEST = 40
_NEVER_EMPTY = frozenset({"priority", "usage_factor_millionths", "grace_seconds"})
PARENT = "parent"  # Slurm's word for shares that are those of the group above


def typed(field: Field, value: Value) -> Mapping[str, list[str]]:
    """What the inputs of a field hold, by their names."""
    if field.kind is Kind.TRES:
        rows = [one for one in value if isinstance(one, TresLimit)] if value else []  # type: ignore[union-attr]
        return {
            field.key + RESOURCE: [row.tres for row in rows],
            field.key + NUMBER: [_amount(row) for row in rows],
        }
    if isinstance(value, tuple):
        return {field.key: [str(one) for one in value]}
    if isinstance(value, int):
        return {field.key: [_number(field, value)]}
    if value is None and field.kind is Kind.SHARES:
        return {field.key: [PARENT]}
    return {field.key: [value or ""]}


def read(field: Field, sent: Sent) -> Value:
    """The value of a field. Raises Refused with the code of what is wrong; nothing is judged that
    `core.qos_checks` judges."""
    if field.kind is Kind.TRES:
        return _rows(rows_sent(field, sent))
    if field.kind in {Kind.NAMES, Kind.FLAGS, Kind.MODES}:
        return tuple(dict.fromkeys(sent.getlist(field.key)))
    text = sent.get(field.key, "").strip()
    if field.kind is Kind.TEXT:
        return text
    if field.kind is Kind.NAME:
        return text or None
    if field.kind is Kind.SHARES and text == PARENT:
        return None
    if not text:
        if field.key in _NEVER_EMPTY or field.kind is Kind.SHARES:
            raise Refused("policy_needed", field=field.key)
        return None
    return _one(field, text)


def rows_sent(field: Field, sent: Sent) -> list[tuple[str, str]]:
    """Resource and number of each row, as typed."""
    numbers = sent.getlist(field.key + NUMBER)
    return list(zip(sent.getlist(field.key + RESOURCE), numbers, strict=False))


def _amount(row: TresLimit) -> str:
    if row.tres != "mem":
        return str(row.limit)
    # 1/1024 has ten decimals, so that every MiB can be typed.
    exact = Decimal(row.limit) / MIB_PER_GIB
    return f"{exact:f}"


def _number(field: Field, value: int) -> str:
    if field.kind is Kind.MINUTES and value:
        return format_time_limit(value).removeprefix("0-")
    if field.kind is Kind.SECONDS and value:
        minutes, seconds = divmod(value, 60)
        return f"{format_time_limit(minutes)[:-2]}{seconds:02}".removeprefix("0-")
    return decimal(value) if field.kind is Kind.MILLIONTHS else str(value)


def _one(field: Field, text: str) -> int:
    if field.kind is Kind.MILLIONTHS:
        return _millionths(text)
    if field.kind in {Kind.MINUTES, Kind.SECONDS}:
        return _time(field, text)
    return _whole(text)


def _whole(text: str, code: str = "policy_whole_number") -> int:
    if not _WHOLE.fullmatch(text):
        raise Refused(code)
    if len(text) > _LONGEST:
        raise Refused("policy_bad_number")
    return int(text)


def _decimal(text: str, code: str) -> Decimal:
    if not _DECIMAL.fullmatch(text):
        raise Refused(code)
    if len(text) > _LONGEST:
        raise Refused("policy_bad_number")
    return Decimal(text)


def _millionths(text: str) -> int:
    exact = _decimal(text, "policy_factor") * MILLION
    if exact != int(exact):
        raise Refused("policy_factor")
    return int(exact)


def _time(field: Field, text: str) -> int:
    try:
        seconds = parse_seconds(text)
    except BadTimeLimit as error:
        raise Refused("policy_time") from error
    return seconds if field.kind is Kind.SECONDS else -(-seconds // 60)


def _rows(rows: list[tuple[str, str]]) -> tuple[TresLimit, ...]:
    found = []
    for tres, text in ((one.strip(), number.strip()) for one, number in rows):
        if not tres and not text:
            continue
        if not text:
            raise Refused("policy_row_number")
        if not tres:
            raise Refused("policy_row_resource")
        found.append(TresLimit(tres, _limit(tres, text)))
    return tuple(sorted(found))


def _limit(tres: str, text: str) -> int:
    if tres != "mem":
        return _whole(text, "policy_number")
    mib = round(_decimal(text, "policy_number") * MIB_PER_GIB)
    return min(mib, MOST_TRES + 1)
