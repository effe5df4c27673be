"""What happened to a group's credit in a stretch of time: each line with what it was for.

Windows are half open, as `core.months.month_bounds` gives them. Amounts are millionths; what
was spent is a positive number.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Select, and_, func, literal, or_, select
from sqlalchemy.orm import Session, aliased

from gateway.store import money_models as mm
from gateway.store.models import Job, Person, Run, Submission

HOLDING = ("hold", "release")
SPENDING = ("charge", "correction", "refund", "refund_undone", "storage")
_REFUNDING = ("refund", "refund_undone")
_BOTH_SIDES = ("lend", "return")
_MOST_ROWS = 1_000_000  # more than any month of a group has


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page ended: the next one begins behind it."""

    at: datetime
    id: int


@dataclass(frozen=True, slots=True)
class EntryRow:
    """One line. `balance` is what the group had after it. The job is the run's of a charge, or
    the submission's of a hold; `other_group` is the other side of a loan."""

    id: int
    at: datetime
    kind: str  # core.ledger.EntryKind
    amount: int
    balance: int
    note: str | None
    by: str | None  # the login of who did it
    pot_id: int
    pot_kind: str  # core.pots.PotKind
    pot_reason: str
    pot_resource: str | None
    pot_expires: datetime | None
    charge_id: int | None
    run_id: int | None
    run_state: str | None
    run_start: datetime | None
    run_end: datetime | None
    card_seconds: int | None
    submission_id: int | None
    job_id: int | None
    slurm_id: int | None
    array_job_id: int | None
    array_task: int | None
    job_name: str | None
    user: str | None
    refund_reason: str | None
    refund_evidence: dict[str, Any] | None
    other_group: str | None

    @property
    def place(self) -> Place:
        return Place(self.at, self.id)


@dataclass(frozen=True, slots=True)
class Totals:
    """`lines` are the sums of each kind; `opening` + all of them = `closing`."""

    opening: int
    closing: int
    lines: tuple["KindTotal", ...]


@dataclass(frozen=True, slots=True)
class KindTotal:
    kind: str
    amount: int
    entries: int


def entries(
    session: Session,
    group: str,
    *,
    since: datetime,
    until: datetime,
    holds: bool = True,
    newest_first: bool = False,
    after: Place | None = None,
    limit: int | None = 200,
    kinds: Collection[str] = (),
) -> list[EntryRow]:
    """The lines with `since <= at < until`, oldest first unless told otherwise. Without `holds`
    the lines of holds are left out, and balances are as if nothing were held. With `kinds` only
    those lines are shown; their balances stay those of all lines."""
    first = opening(session, group, since=since, holds=holds)
    lines = _lines(group, since=since, until=until, holds=holds, running=bool(kinds)).subquery()
    order = (lines.c.at.desc(), lines.c.id.desc()) if newest_first else (lines.c.at, lines.c.id)
    query = _with_what_for(lines).order_by(*order).limit(limit or _MOST_ROWS)
    if after is not None:
        query = query.where(_behind(lines, after, newest_first=newest_first))
    if kinds:
        query = query.where(lines.c.kind.in_(list(kinds)))
    found = [_entry(tuple(row), first) for row in session.execute(query)]
    if kinds or not found:
        return found
    after_first = first + _sum_to(session, group, found[0].place, since=since, holds=holds)
    return list(_balanced(found, after_first, newest_first=newest_first))


def opening(session: Session, group: str, *, since: datetime, holds: bool = True) -> int:
    """What the group had just before `since`: what there is now less what came from then on."""
    later = _sum(mm.Entry.amount).where(mm.Entry.group == group, mm.Entry.at >= since)
    now = _sum(mm.Pot.left).where(mm.Pot.group == group)
    if holds:
        query = select(now.scalar_subquery() - later.scalar_subquery())
    else:
        held = _sum(mm.Hold.amount).where(mm.Hold.group == group, mm.Hold.closed_at.is_(None))
        later = later.where(mm.Entry.kind.not_in(HOLDING))
        query = select(now.scalar_subquery() + held.scalar_subquery() - later.scalar_subquery())
    return int(session.scalar(query) or 0)


def totals(
    session: Session, group: str, *, since: datetime, until: datetime, holds: bool = True
) -> Totals:
    """The sums of each kind in the window, by kind's name, with both balances."""
    first = opening(session, group, since=since, holds=holds)
    query = (
        select(mm.Entry.kind, func.sum(mm.Entry.amount), func.count())
        .where(mm.Entry.group == group, mm.Entry.at >= since, mm.Entry.at < until)
        .group_by(mm.Entry.kind)
        .order_by(mm.Entry.kind)
    )
    if not holds:
        query = query.where(mm.Entry.kind.not_in(HOLDING))
    lines = tuple(KindTotal(row[0], int(row[1]), row[2]) for row in session.execute(query))
    return Totals(first, first + sum(line.amount for line in lines), lines)


def _entry(row: tuple[Any, ...], first: int) -> EntryRow:
    values: list[Any] = [*row[:4], first + int(row[4]), *row[5:]]
    return EntryRow(*values)


def _balanced(rows: Sequence[EntryRow], balance: int, *, newest_first: bool) -> Iterator[EntryRow]:
    """Neighbours with their balances, from that of the first row on."""
    for place, row in enumerate(rows):
        if place:
            balance += -rows[place - 1].amount if newest_first else row.amount
        yield replace(row, balance=balance)


def _sum_to(session: Session, group: str, place: Place, *, since: datetime, holds: bool) -> int:
    """The window's lines up to this one, with it."""
    entry = mm.Entry
    query = _sum(entry.amount).where(entry.group == group, entry.at >= since)
    query = query.where(or_(entry.at < place.at, and_(entry.at == place.at, entry.id <= place.id)))
    if not holds:
        query = query.where(entry.kind.not_in(HOLDING))
    return int(session.scalar(query) or 0)


def _lines(group: str, *, since: datetime, until: datetime, holds: bool, running: bool) -> Any:
    """The window's entries. `running`: with the sum up to each, before any are picked out; that
    reads all of them, so a page of neighbours adds up for itself."""
    so_far: Any = literal(0)
    if running:
        so_far = func.sum(mm.Entry.amount).over(order_by=(mm.Entry.at, mm.Entry.id))
    query = select(mm.Entry, so_far.label("running")).where(
        mm.Entry.group == group, mm.Entry.at >= since, mm.Entry.at < until
    )
    return query if holds else query.where(mm.Entry.kind.not_in(HOLDING))


def _with_what_for(lines: Any) -> Select[Any]:
    line, other = lines.c, aliased(mm.Entry)
    return (
        select(*_columns(line), other.group)
        .select_from(lines)
        .join(mm.Pot, mm.Pot.id == line.pot_id)
        .outerjoin(Person, Person.id == line.person_id)
        .outerjoin(mm.Charge, mm.Charge.id == line.charge_id)
        .outerjoin(Run, Run.id == mm.Charge.run_id)
        .outerjoin(mm.Hold, mm.Hold.id == line.hold_id)
        .outerjoin(Submission, Submission.id == mm.Hold.submission_id)
        .outerjoin(Job, Job.id == func.coalesce(Run.job_id, Submission.job_id))
        .outerjoin(
            mm.Refund,
            and_(mm.Refund.charge_id == line.charge_id, line.kind.in_(_REFUNDING)),
        )
        .outerjoin(
            other,
            and_(line.kind.in_(_BOTH_SIDES), other.key == line.key, other.pot_id != line.pot_id),
        )
    )


def _columns(line: Any) -> tuple[Any, ...]:
    """In the order of EntryRow, but for its last."""
    return (
        line.id,
        line.at,
        line.kind,
        line.amount,
        line.running,
        line.note,
        Person.login,
        mm.Pot.id,
        mm.Pot.kind,
        mm.Pot.reason,
        mm.Pot.resource,
        mm.Pot.expires,
        line.charge_id,
        Run.id,
        Run.state,
        Run.start_time,
        Run.end_time,
        mm.Charge.card_seconds,
        mm.Hold.submission_id,
        Job.id,
        Job.slurm_id,
        Job.array_job_id,
        Job.array_task,
        func.coalesce(Job.name, Submission.request["name"].as_string()),
        func.coalesce(mm.Charge.user, mm.Hold.user),
        mm.Refund.reason,
        mm.Refund.evidence,
    )


def _behind(lines: Any, place: Place, *, newest_first: bool) -> Any:
    at, id_ = lines.c.at, lines.c.id
    if newest_first:
        return or_(at < place.at, and_(at == place.at, id_ < place.id))
    return or_(at > place.at, and_(at == place.at, id_ > place.id))


def _sum(column: Any) -> Select[Any]:
    return select(func.coalesce(func.sum(column), 0))
