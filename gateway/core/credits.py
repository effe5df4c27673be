"""Credits: whole millionths of the site's currency. A float never enters."""

import re
from typing import NewType

from gateway.errors import Refused

Credits = NewType("Credits", int)  # millionths of the currency

MILLION = 1_000_000
# Beyond any budget, and nine thousand of them still fit a database's 64-bit integer.
MOST = Credits(10**9 * MILLION)
_DECIMALS = 6
_AMOUNT = re.compile(r"([+-]?)(\d*)(?:\.(\d*))?", re.ASCII)


class BadCredits(Refused):
    """A text that is no amount: `credits_unreadable`, `credits_too_fine`, `credits_too_large`."""


def parse_credits(text: str) -> Credits:
    """Exact: "1.2" is 1,200,000. More than six decimals are refused, never rounded."""
    found = _AMOUNT.fullmatch(text.strip())
    if found is None or not (found[2] or found[3]):
        raise BadCredits("credits_unreadable")
    sign, whole, decimals = found[1], found[2].lstrip("0"), (found[3] or "").rstrip("0")
    if len(decimals) > _DECIMALS:
        raise BadCredits("credits_too_fine")
    if len(whole) > len(str(MOST)):
        raise BadCredits("credits_too_large", most=MOST // MILLION)
    amount = int(whole or 0) * MILLION + int(decimals.ljust(_DECIMALS, "0"))
    if amount > MOST:
        raise BadCredits("credits_too_large", most=MOST // MILLION)
    return Credits(-amount if sign == "-" else amount)


def format_credits(amount: int) -> str:
    """Two decimals at least, six at most, thousands apart: 1234500000 is "1,234.50"."""
    whole, part = divmod(abs(amount), MILLION)
    decimals = f"{part:06d}".rstrip("0").ljust(2, "0")
    return f"{'-' if amount < 0 else ''}{whole:,}.{decimals}"
