"""Lines of what groups brought, versions of the rules, and runs. Nothing here is ever changed, but
for a run that is not done yet."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from sqlalchemy import Select, exists, func, select, update
from sqlalchemy.orm import Session, aliased

from gateway.core.contribution import Entry, Rules
from gateway.core.ledger import EntryKind
from gateway.core.policy_change import Source
from gateway.core.pots import PotKind
from gateway.store import contribution_models as cm
from gateway.store import money_models as mm
from gateway.store.models import Person, table_of
from gateway.store.policy_models import PolicyChange
from gateway.store.upsert import insert_if_new
from gateway.wire import codec

MOST_LINES = 200  # a page
MOST_VERSIONS = 50


@dataclass(frozen=True, slots=True)
class NewLine:
    """`key` makes a repeat harmless."""

    key: str
    group: str
    kind: str
    amount: int
    day: date
    ended_on: date | None
    note: str
    replaces_id: int | None = None


@dataclass(frozen=True, slots=True)
class LineRow:
    """A line as it was written; `by` None: on the host. `replaced`: another stands for it now."""

    entry: Entry
    replaces_id: int | None
    replaced: bool
    at: datetime
    by: str | None


@dataclass(frozen=True, slots=True)
class Version:
    number: int
    rules: Rules
    at: datetime
    by: str | None


@dataclass(frozen=True, slots=True)
class Run:
    """One computation, by the rules of `version`. `done_at` None: it is not through yet."""

    id: int
    key: str
    day: date
    at: datetime
    done_at: datetime | None
    version: int
    groups: int
    differing: int
    change_id: int | None
    error_code: str | None
    by: str | None


@dataclass(frozen=True, slots=True)
class LedgerLine:
    group: str
    amount: int
    at: datetime


def add_line(session: Session, new: NewLine, *, now: datetime, person_id: int | None) -> int | None:
    """None: the key is there already, or somebody has replaced that line before."""
    row = {name: getattr(new, name) for name in NewLine.__slots__ if name != "group"}
    row |= {"group_name": new.group, "at": now, "person_id": person_id}
    return insert_if_new(session, table_of(cm.ContributionLine), row)


def line(session: Session, line_id: int) -> LineRow | None:
    found = session.execute(_lines().where(cm.ContributionLine.id == line_id)).one_or_none()
    return _line(found) if found else None


def line_by_key(session: Session, key: str) -> LineRow | None:
    found = session.execute(_lines().where(cm.ContributionLine.key == key)).one_or_none()
    return _line(found) if found else None


def lines(session: Session, *, group: str | None = None, limit: int = MOST_LINES) -> list[LineRow]:
    """As they were written, also those replaced since, the newest first."""
    query = _lines().order_by(cm.ContributionLine.id.desc()).limit(limit)
    if group is not None:
        query = query.where(cm.ContributionLine.group == group)
    return [_line(row) for row in session.execute(query)]


def entries(session: Session, *, group: str | None = None) -> list[Entry]:
    """What holds: lines that no other replaces, but for those taken back."""
    line, later = cm.ContributionLine, aliased(cm.ContributionLine)
    query = (
        select(*_ENTRY)
        .where(line.amount > 0, ~exists().where(later.replaces_id == line.id))
        .order_by(line.day, line.id)
    )
    if group is not None:
        query = query.where(line.group == group)
    return [_entry(row) for row in session.execute(query)]


def has_kind(session: Session, kind: str) -> bool:
    """Whether any line was ever written of it."""
    query = select(cm.ContributionLine.id).where(cm.ContributionLine.kind == kind).limit(1)
    return session.scalar(query) is not None


def lent(session: Session, *, group: str | None = None) -> list[LedgerLine]:
    """What each lender has not got back of each loan, in millionths of the currency."""
    loan = mm.Loan
    query = select(loan.lender, loan.amount - loan.returned, loan.at).order_by(loan.id)
    query = query.where(loan.amount > loan.returned)
    if group is not None:
        query = query.where(loan.lender == group)
    return [LedgerLine(*row) for row in session.execute(query)]


def topped_up(session: Session, *, group: str | None = None) -> list[LedgerLine]:
    """Money put into balances, and taken out again (negative)."""
    entry = mm.Entry
    query = (
        select(entry.group, entry.amount, entry.at)
        .join(mm.Pot, mm.Pot.id == entry.pot_id)
        .where(entry.kind == EntryKind.TOP_UP.value, mm.Pot.kind == PotKind.BALANCE.value)
        .order_by(entry.id)
    )
    if group is not None:
        query = query.where(entry.group == group)
    return [LedgerLine(*row) for row in session.execute(query)]


def add_rules(session: Session, rules: Rules, *, now: datetime, person_id: int | None) -> int:
    row = cm.ContributionRules(rules=codec.dump(rules), at=now, person_id=person_id)
    session.add(row)
    session.flush()
    return row.id


def version(session: Session, number: int | None = None) -> Version | None:
    """That version, or the newest; None: nobody has set any rules."""
    query = _versions().limit(1)
    if number is not None:
        query = query.where(cm.ContributionRules.id == number)
    found = session.execute(query).one_or_none()
    return _version(found) if found else None


def versions(session: Session, *, limit: int = MOST_VERSIONS) -> list[Version]:
    """The newest first."""
    return [_version(row) for row in session.execute(_versions().limit(limit))]


def open_run(
    session: Session, key: str, *, day: date, version: int, now: datetime, person_id: int | None
) -> Run:
    """The run of this key, made when there is none."""
    row = {"key": key, "day": day, "at": now, "version": version, "person_id": person_id}
    row |= {"done_at": None, "groups": 0, "differing": 0, "change_id": None, "error_code": None}
    insert_if_new(session, table_of(cm.ContributionRun), row)
    found = run_by_key(session, key)
    assert found is not None, "it is there, or was just made"
    return found


def end_run(
    session: Session,
    run_id: int,
    *,
    now: datetime,
    groups: int,
    differing: int,
    change_id: int | None,
) -> None:
    _set_run(
        session,
        run_id,
        done_at=now,
        groups=groups,
        differing=differing,
        change_id=change_id,
        error_code=None,
    )


def fail_run(session: Session, run_id: int, code: str) -> None:
    """It is tried again under its key."""
    _set_run(session, run_id, error_code=code)


def run_by_key(session: Session, key: str) -> Run | None:
    found = session.execute(_runs().where(cm.ContributionRun.key == key)).one_or_none()
    return Run(*found) if found else None


def runs(session: Session, *, limit: int = 20) -> list[Run]:
    """The newest first."""
    return [Run(*row) for row in session.execute(_runs().limit(limit))]


def last_change(session: Session) -> int | None:
    """The newest that a run proposed, also one that was killed before it could note it."""
    newest = select(func.max(PolicyChange.id))
    return session.scalar(newest.where(PolicyChange.source == Source.CONTRIBUTION.value))


_LINE = cm.ContributionLine
_ENTRY = (
    _LINE.id,
    _LINE.group,
    _LINE.kind,
    _LINE.amount,
    _LINE.day,
    _LINE.ended_on,
    _LINE.note,
)


def _entry(row: Sequence[Any]) -> Entry:
    return Entry(
        id=row[0],
        group=row[1],
        kind=row[2],
        amount=row[3],
        day=row[4],
        ended_on=row[5],
        note=row[6],
    )


def _lines() -> Select[Any]:
    later = aliased(_LINE)
    replaced = exists().where(later.replaces_id == _LINE.id)
    columns: tuple[Any, ...] = (*_ENTRY, _LINE.replaces_id, replaced, _LINE.at, Person.login)
    return select(*columns).outerjoin(Person, Person.id == _LINE.person_id)


def _line(row: Sequence[Any]) -> LineRow:
    return LineRow(_entry(row), row[7], bool(row[8]), row[9], row[10])


def _versions() -> Select[Any]:
    rules = cm.ContributionRules
    return (
        select(rules.id, rules.rules, rules.at, Person.login)
        .outerjoin(Person, Person.id == rules.person_id)
        .order_by(rules.id.desc())
    )


def _version(row: Sequence[Any]) -> Version:
    return Version(row[0], codec.parse(Rules, row[1]), row[2], row[3])


def _runs() -> Select[Any]:
    run = cm.ContributionRun
    columns = [getattr(run, name) for name in Run.__slots__ if name != "by"]
    return (
        select(*columns, Person.login)
        .outerjoin(Person, Person.id == run.person_id)
        .order_by(run.id.desc())
    )


def _set_run(session: Session, run_id: int, **values: Any) -> None:
    session.execute(
        update(cm.ContributionRun).where(cm.ContributionRun.id == run_id).values(**values)
    )
