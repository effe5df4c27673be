"""What is wanted of people's places in groups, and how far each wish has come."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import func, insert, or_, select, update
from sqlalchemy.orm import Session

from gateway.store.models import Job, table_of
from gateway.store.people_models import MembershipChange

_TABLE = table_of(MembershipChange)
_PENDING = "pending"


class Wanted(StrEnum):
    MEMBER = "member"
    ABSENT = "absent"
    LEADER = "leader"
    NOT_LEADER = "not_leader"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """See people_models.MembershipChange."""

    id: int
    group: str
    user: str
    wanted: Wanted
    reopens: bool
    state: str
    code: str | None
    at: datetime
    person_id: int | None
    closed_at: datetime | None
    done_at: datetime | None

    @property
    def pending(self) -> bool:
        return self.state == _PENDING


@dataclass(frozen=True, slots=True)
class OpenJob:
    """A job that waits or runs."""

    id: int
    slurm_id: int
    state: str
    name: str


_COLUMNS = [getattr(MembershipChange, name) for name in ChangeRow.__slots__]


def ask(
    session: Session,
    group: str,
    user: str,
    wanted: Wanted,
    *,
    now: datetime,
    person_id: int | None,
) -> ChangeRow:
    """The wish; the same one while it is pending. A wish to be in or out ends the opposite one,
    and one that undoes a removal opens again what that closed."""
    rows = [row for row in pending(session, group) if row.user == user]
    for row in rows:
        if row.wanted is wanted:
            return row
    reopens = False
    for row in rows:
        if _ends(wanted, row.wanted):
            _set(session, row.id, state="undone", done_at=now)
            reopens = reopens or row.wanted is Wanted.ABSENT
    values: dict[str, Any] = {"group_name": group, "unix_user": user, "wanted": wanted.value}
    values |= {"reopens": reopens, "state": _PENDING, "at": now, "person_id": person_id}
    new_id = session.scalar(insert(_TABLE).values(**values).returning(_TABLE.c.id))
    assert new_id is not None
    return get(session, new_id)


def get(session: Session, change_id: int) -> ChangeRow:
    row = session.execute(select(*_COLUMNS).where(MembershipChange.id == change_id)).one()
    return _row(row)


def pending(session: Session, group: str | None = None) -> list[ChangeRow]:
    """The oldest first; of all groups for None."""
    query = select(*_COLUMNS).where(MembershipChange.state == _PENDING)
    if group is not None:
        query = query.where(MembershipChange.group == group)
    return [_row(row) for row in session.execute(query.order_by(MembershipChange.id))]


def done_since(session: Session, group: str, since: datetime) -> list[ChangeRow]:
    """What Slurm took since then, the oldest first; of another default group from everywhere."""
    query = select(*_COLUMNS).where(
        or_(MembershipChange.group == group, MembershipChange.wanted == Wanted.DEFAULT.value),
        MembershipChange.state == "done",
        MembershipChange.done_at >= since,
    )
    return [_row(row) for row in session.execute(query.order_by(MembershipChange.id))]


def was_added(session: Session, group: str, user: str) -> bool:
    """Whether the newest wish that Slurm took is that this person is in the group."""
    query = (
        select(MembershipChange.wanted)
        .where(MembershipChange.group == group, MembershipChange.user == user)
        .where(MembershipChange.state == "done")
        .where(MembershipChange.wanted.in_((Wanted.MEMBER.value, Wanted.ABSENT.value)))
        .order_by(MembershipChange.id.desc())
        .limit(1)
    )
    return session.scalar(query) == Wanted.MEMBER.value


def leaving(session: Session, user: str) -> frozenset[str]:
    """Groups that this person is being removed from."""
    query = select(MembershipChange.group).where(
        MembershipChange.state == _PENDING,
        MembershipChange.wanted == Wanted.ABSENT.value,
        MembershipChange.user == user,
    )
    return frozenset(session.scalars(query))


def closed(session: Session, change_id: int, *, at: datetime) -> None:
    """From now on Slurm refuses this person's new jobs in the group."""
    first = func.coalesce(MembershipChange.closed_at, at)
    _set(session, change_id, closed_at=first)


def waits(session: Session, change_id: int, *, code: str) -> None:
    _set(session, change_id, code=code)


def finish(
    session: Session, change_id: int, *, state: str, code: str | None, now: datetime
) -> bool:
    """False: another process did, or somebody wants the opposite by now."""
    return _set(session, change_id, state=state, code=code, done_at=now)


def again(session: Session, group: str, user: str) -> None:
    """The newest wish to be a member is to be carried out once more."""
    newest = (
        select(func.max(MembershipChange.id))
        .where(MembershipChange.group == group, MembershipChange.user == user)
        .where(MembershipChange.wanted == Wanted.MEMBER.value)
        .scalar_subquery()
    )
    statement = update(MembershipChange).where(MembershipChange.id == newest)
    session.execute(statement.values(state=_PENDING, done_at=None))


def open_jobs(session: Session, group: str, user: str) -> list[OpenJob]:
    """What this person has in the group that waits or runs, as the last poll saw it."""
    query = select(Job.id, Job.slurm_id, Job.state, Job.name).where(
        Job.active, Job.group == group, Job.user == user
    )
    return [OpenJob(*row) for row in session.execute(query.order_by(Job.id))]


def open_counts(session: Session, group: str) -> dict[str, dict[str, int]]:
    """How many jobs of each state, by user."""
    query = (
        select(Job.user, Job.state, func.count())
        .where(Job.active, Job.group == group)
        .group_by(Job.user, Job.state)
    )
    found: dict[str, dict[str, int]] = {}
    for user, state, count in session.execute(query):
        found.setdefault(user, {})[state] = count
    return found


def _ends(new: Wanted, old: Wanted) -> bool:
    """Who leaves neither leads nor has the group as the default."""
    pairs = ({Wanted.MEMBER, Wanted.ABSENT}, {Wanted.LEADER, Wanted.NOT_LEADER})
    return new is Wanted.ABSENT or {new, old} in pairs


def _set(session: Session, change_id: int, **values: Any) -> bool:
    """Only while it is pending."""
    statement = update(MembershipChange).where(
        MembershipChange.id == change_id, MembershipChange.state == _PENDING
    )
    result = session.execute(
        statement.values(**values).execution_options(synchronize_session=False)
    )
    return bool(getattr(result, "rowcount", 0))


def _row(row: Any) -> ChangeRow:
    change_id, group, user, wanted, *rest = row
    return ChangeRow(change_id, group, user, Wanted(wanted), *rest)
