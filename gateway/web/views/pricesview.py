"""Rows of price lists sorted into what holds now, what comes and what was."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from gateway.core.credits import format_credits
from gateway.store.prices import SITE
from gateway.store.queries.price_rows import PriceRow, TermsRow

NOW, COMING, PAST = "now", "coming", "past"


@dataclass(frozen=True, slots=True)
class PriceLine:
    row: PriceRow
    when: str  # now, coming or past
    ends: datetime | None


@dataclass(frozen=True, slots=True)
class TermsLine:
    row: TermsRow
    when: str
    ends: datetime | None
    factor: str


@dataclass(frozen=True, slots=True)
class PriceTable:
    """One list. `is_site`: what is charged."""

    name: str
    is_site: bool
    lines: list[PriceLine]
    past: list[PriceLine]


def lists(rows: Iterable[PriceRow], now: datetime) -> list[PriceTable]:
    """The site's own first, also when it is empty."""
    by_list: dict[str, list[PriceRow]] = {SITE: []}
    for row in rows:
        by_list.setdefault(row.list_name, []).append(row)
    return [_table(name, found, now) for name, found in by_list.items()]


def terms(rows: Iterable[TermsRow], now: datetime) -> list[TermsLine]:
    found: list[TermsLine] = []
    following: dict[str, datetime] = {}
    for row in rows:  # newest start first
        ends = following.get(row.qos)
        factor = format_credits(row.factor_millionths)
        found.append(TermsLine(row, _when(row.starts, ends, now), ends, factor))
        following[row.qos] = row.starts
    return sorted(found, key=lambda line: line.when == PAST)


def _table(name: str, rows: list[PriceRow], now: datetime) -> PriceTable:
    lines: list[PriceLine] = []
    following: dict[str, datetime] = {}
    for row in rows:
        ends = following.get(row.resource)
        lines.append(PriceLine(row, _when(row.starts, ends, now), ends))
        following[row.resource] = row.starts
    return PriceTable(
        name=name,
        is_site=name == SITE,
        lines=[line for line in lines if line.when != PAST],
        past=[line for line in lines if line.when == PAST],
    )


def _when(starts: datetime, ends: datetime | None, now: datetime) -> str:
    if starts > now:
        return COMING
    return NOW if ends is None or ends > now else PAST
