"""Credits: whole millionths of the site's currency. A float never enters."""

from decimal import Decimal, InvalidOperation
from typing import NewType

from gateway.errors import Refused

Credits = NewType("Credits", int)  # millionths of the currency

MILLION = 1_000_000
# Beyond any budget; keeps sums inside what a database's 64-bit integer holds.
MOST = Credits(10**12 * MILLION)


class BadCredits(Refused):
    """A text that is no amount: `credits_unreadable`, `credits_too_fine`, `credits_too_large`."""


def parse_credits(text: str) -> Credits:
    """Exact: "1.2" is 1,200,000. More than six decimals are refused, never rounded."""
    try:
        amount = Decimal(text.strip()) * MILLION
    except InvalidOperation as error:
        raise BadCredits("credits_unreadable") from error
    if not amount.is_finite():
        raise BadCredits("credits_unreadable")
    if abs(amount) > MOST:
        raise BadCredits("credits_too_large", most=MOST // MILLION)
    if amount != amount.to_integral_value():
        raise BadCredits("credits_too_fine")
    return Credits(int(amount))


def format_credits(amount: int) -> str:
    """Two decimals at least, six at most, thousands apart: 1234500000 is "1,234.50"."""
    whole, part = divmod(abs(amount), MILLION)
    decimals = f"{part:06d}".rstrip("0").ljust(2, "0")
    return f"{'-' if amount < 0 else ''}{whole:,}.{decimals}"
