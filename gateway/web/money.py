"""How amounts look: in the site's currency, to the cent, with the exact amount beneath."""

from datetime import date, datetime, timedelta
from decimal import Decimal

from flask import Flask
from markupsafe import Markup

from gateway.core.credits import MILLION, format_credits
from gateway.core.ledger import EntryKind
from gateway.web.deps import deps
from gateway.web.money_texts import ENTRY_KINDS
from gateway.web.texts import format_currency

_CENT = MILLION // 100


def init_money(app: Flask) -> None:
    """Give the templates their filters."""
    app.jinja_env.filters.update(
        money=money,
        money_text=money_text,
        hours=card_hours,
        typed_amount=typed_amount,
        day=day,
        last_day=last_day,
        kind_word=kind_word,
    )


def money(amount: int | None) -> Markup | str:
    """For people: two decimals; what that leaves out is in the title. Empty for None."""
    if amount is None:
        return ""
    exact = format_credits(amount)
    shown = money_text(amount)
    if amount % _CENT == 0:
        return Markup('<data value="{}">{}</data>').format(exact, shown)
    title = f"{exact} {deps().settings.currency}"
    return Markup('<data value="{}" title="{}">{}</data>').format(exact, title, shown)


def money_text(amount: int) -> str:
    """The same in a sentence. What two decimals would make 0 is shown exactly."""
    return _written(amount, exact=0 < abs(amount) < _CENT)


def typed_amount(amount: int) -> str:
    """As one would type it, and as the form reads it."""
    return format_credits(amount).replace(",", "")


def kind_word(kind: str) -> str:
    """What a line of the ledger is."""
    return str(ENTRY_KINDS[EntryKind(kind)])


def card_hours(card_seconds: int | None) -> str:
    """`12.5`: card-hours to one decimal, as many as people compare."""
    if card_seconds is None:
        return ""
    tenths = (card_seconds * 10 + 1800) // 3600
    return f"{tenths // 10:,}.{tenths % 10}"


def day(at: date | datetime) -> str:
    """A day of the site's zone, by which months and budgets go."""
    if isinstance(at, datetime):
        at = at.astimezone(deps().settings.timezone).date()
    return at.isoformat()


def last_day(until: datetime) -> str:
    """The last day of a time that ends before `until`."""
    return day(until - timedelta(microseconds=1))


def _written(amount: int, *, exact: bool) -> str:
    decimal = Decimal(amount) / MILLION
    return format_currency(decimal, deps().settings.currency, exact=exact)
