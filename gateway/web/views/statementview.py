"""A group's statement of a month: read from the address, as a page and as CSV."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from flask import url_for

from gateway.core.credits import format_credits
from gateway.core.ledger import EntryKind
from gateway.core.months import month_bounds, month_of
from gateway.store.queries import statement as reads
from gateway.store.queries.statement import EntryRow, KindTotal, Place, Totals
from gateway.web.csvtext import csv_row
from gateway.web.deps import deps
from gateway.web.money import kind_word
from gateway.web.money_texts import REFUND_REASONS
from gateway.web.show import plain
from gateway.web.texts import gettext
from gateway.web.views.groupview import pot_words
from gateway.web.views.joblist import Chip

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

PAGE = 100
MOST_PRINTED = 5_000
COLUMNS = (
    "id",
    "time_utc",
    "kind",
    "amount",
    "balance",
    "pot",
    "job",
    "job_name",
    "user",
    "card_seconds",
    "other_group",
    "by",
    "note",
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What the address asks for. `kinds` empty: every line."""

    group: str
    month: str
    since: datetime
    until: datetime
    holds: bool
    kinds: tuple[str, ...]
    after: Place | None

    def address(self, **changes: str | None) -> str:
        given: dict[str, str | None] = {
            "month": self.month,
            "holds": "" if self.holds else "no",
            "kind": self.kinds[0] if self.kinds else "",
        }
        wanted = {name: value for name, value in (given | changes).items() if value}
        return url_for("group.statement", name=self.group, **wanted)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Line:
    row: EntryRow
    kind: str
    what: str
    job: str
    pot: str


@dataclass(frozen=True, slots=True)
class StatementView:
    group: str
    month: str
    totals: Totals
    sums: list[tuple[str, KindTotal]]
    lines: list[Line]
    chips: list[Chip]
    previous: str | None
    next: str | None
    older: str | None
    first: str | None
    csv: str
    printed: str
    filtered: bool
    open_month: bool


def asked(group: str, args: Mapping[str, str]) -> Asked:
    """Nonsense is as if it were not there: a saved address must not break."""
    zone = deps().settings.timezone
    month = args.get("month", "") or month_of(deps().clock(), zone)
    try:
        since, until = month_bounds(month, zone)
    except (ValueError, OverflowError):
        month = month_of(deps().clock(), zone)
        since, until = month_bounds(month, zone)
    kind = args.get("kind", "")
    kinds = (kind,) if kind in {one.value for one in EntryKind} else ()
    return Asked(
        group, month, since, until, args.get("holds") != "no", kinds, _place(args.get("after", ""))
    )


def build(session: "Session", wanted: Asked, *, limit: int = PAGE) -> StatementView:
    totals = reads.totals(
        session, wanted.group, since=wanted.since, until=wanted.until, holds=wanted.holds
    )
    rows = reads.entries(
        session,
        wanted.group,
        since=wanted.since,
        until=wanted.until,
        holds=wanted.holds,
        after=wanted.after,
        limit=limit + 1,
        kinds=wanted.kinds,
    )
    more = rows[limit - 1].place if len(rows) > limit else None
    zone, now = deps().settings.timezone, deps().clock()
    before = month_of(wanted.since - timedelta(days=1), zone)
    return StatementView(
        group=wanted.group,
        month=wanted.month,
        totals=totals,
        sums=[(kind_word(one.kind), one) for one in totals.lines],
        lines=[line(row) for row in rows[:limit]],
        chips=_chips(wanted, totals),
        previous=wanted.address(month=before),
        next=wanted.address(month=month_of(wanted.until, zone)) if wanted.until <= now else None,
        older=wanted.address(after=_text(more)) if more else None,
        first=wanted.address() if wanted.after else None,
        csv=_elsewhere("group.statement_csv", wanted),
        printed=_elsewhere("group.statement_print", wanted),
        filtered=bool(wanted.kinds),
        open_month=wanted.until > now,
    )


def line(row: EntryRow) -> Line:
    return Line(
        row, kind_word(row.kind), _what(row), number(row), pot_words(row.pot_kind, row.pot_reason)
    )


def number(row: EntryRow) -> str:
    """The job's id as squeue prints it."""
    if row.array_job_id is not None and row.array_task is not None:
        return f"{row.array_job_id}_{row.array_task}"
    return str(row.slurm_id) if row.slurm_id is not None else ""


def csv_lines(rows: Sequence[EntryRow], totals: Totals, wanted: Asked) -> Iterator[str]:
    """Exact amounts; the first and last line are the balances."""
    yield csv_row(COLUMNS)
    empty = [""] * (len(COLUMNS) - 5)
    if not wanted.kinds:
        yield csv_row(["", _utc(wanted.since), "opening", "", _exact(totals.opening), *empty])
    for row in rows:
        pot = f"{row.pot_kind}:{row.pot_reason}"
        yield csv_row(
            [
                str(row.id),
                _utc(row.at),
                row.kind,
                _exact(row.amount),
                _exact(row.balance),
                pot,
                number(row),
                row.job_name or "",
                row.user or "",
                "" if row.card_seconds is None else str(row.card_seconds),
                row.other_group or "",
                row.by or "",
                row.note or "",
            ]
        )
    if not wanted.kinds:
        yield csv_row(["", _utc(wanted.until), "closing", "", _exact(totals.closing), *empty])


def _what(row: EntryRow) -> str:
    """What the line was for, beside its job."""
    if row.refund_reason:
        return str(REFUND_REASONS.get(row.refund_reason, row.refund_reason))
    if row.other_group:
        return plain(row.other_group)
    return plain(row.note) if row.note else ""


def _chips(wanted: Asked, totals: Totals) -> list[Chip]:
    without = not wanted.holds
    chips = [
        Chip(
            gettext("All lines"),
            wanted.address(kind=None, holds=None),
            on=wanted.holds and not wanted.kinds,
        ),
        Chip(
            gettext("Without holds"),
            wanted.address(kind=None, holds="no"),
            on=without and not wanted.kinds,
        ),
    ]
    for one in totals.lines:
        on = one.kind in wanted.kinds
        word = f"{kind_word(one.kind)} {one.entries}"
        chips.append(Chip(word, wanted.address(kind=None if on else one.kind), on=on))
    return chips


def _elsewhere(endpoint: str, wanted: Asked) -> str:
    holds = None if wanted.holds else "no"
    kind = wanted.kinds[0] if wanted.kinds else None
    return url_for(endpoint, name=wanted.group, month=wanted.month, holds=holds, kind=kind)


def _place(text: str) -> Place | None:
    micros, dash, entry = text.partition("-")
    if not (dash and text.isascii() and micros.isdigit() and entry.isdigit()):
        return None
    if len(micros) > 18 or len(entry) > 18:  # what a database's integer holds
        return None
    try:
        return Place(
            datetime.fromtimestamp(0, UTC) + timedelta(microseconds=int(micros)), int(entry)
        )
    except OverflowError:
        return None


def _text(place: Place) -> str:
    since = place.at - datetime.fromtimestamp(0, UTC)
    return f"{since // timedelta(microseconds=1)}-{place.id}"


def _exact(amount: int) -> str:
    return format_credits(amount).replace(",", "")


def _utc(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
