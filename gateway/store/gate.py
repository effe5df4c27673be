"""The gate's own tables: what each group's limits shall be, what Slurm has, which jobs it holds."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import delete, insert, or_, select, update
from sqlalchemy.orm import Session

from gateway.store import money_models as mm
from gateway.store.models import Job, table_of
from gateway.store.upsert import chunks

_GATE, _HELD = table_of(mm.Gate), table_of(mm.GateHeldJob)
NO_USER = ""


@dataclass(frozen=True, slots=True)
class GateRow:
    """`user` empty: the whole group. `before` empty: nothing was ever written to Slurm."""

    group: str
    user: str
    closed: bool
    reason: str
    wanted: dict[str, Any]
    before: dict[str, Any]
    in_slurm: dict[str, Any] | None
    changed_at: datetime
    confirmed_at: datetime | None
    error_code: str | None


@dataclass(frozen=True, slots=True)
class HeldJob:
    """A job that the gate holds, and how the last poll saw it."""

    job_id: int
    slurm_id: int
    user: str
    group: str
    at: datetime
    reason: str
    state: str
    active: bool
    slurm_reason: str | None


_COLUMNS = [getattr(mm.Gate, name) for name in GateRow.__slots__]


def gates(session: Session) -> dict[tuple[str, str], GateRow]:
    rows = [GateRow(*row) for row in session.execute(select(*_COLUMNS))]
    return {(row.group, row.user): row for row in rows}


def gate(session: Session, group: str, user: str = NO_USER) -> GateRow | None:
    query = select(*_COLUMNS).where(mm.Gate.group == group, mm.Gate.user == user)
    found = session.execute(query).one_or_none()
    return GateRow(*found) if found else None


def is_closed(session: Session, group: str, user: str, *, since: datetime) -> bool:
    """Whether the portal itself keeps this person's new jobs out, or did until then."""
    query = select(mm.Gate.group).where(
        mm.Gate.group == group,
        mm.Gate.user.in_((NO_USER, user)),
        or_(mm.Gate.closed, mm.Gate.changed_at >= since),
    )
    return session.execute(query).first() is not None


def put(session: Session, group: str, user: str, values: Mapping[str, Any]) -> None:
    """Write these columns of the row, which is made where there is none."""
    where = (_GATE.c.group_name == group, _GATE.c.user == user)
    done = session.execute(update(_GATE).where(*where).values(**values))
    if getattr(done, "rowcount", 0):
        return
    empty: dict[str, Any] = {"before": {}, "in_slurm": None, "confirmed_at": None}
    row = empty | {"error_code": None} | dict(values) | {"group_name": group, "user": user}
    session.execute(insert(_GATE), row)


def drop(session: Session, group: str, user: str) -> None:
    session.execute(delete(_GATE).where(_GATE.c.group_name == group, _GATE.c.user == user))


def held_jobs(session: Session) -> dict[int, HeldJob]:
    query = select(
        mm.GateHeldJob.job_id,
        Job.slurm_id,
        Job.user,
        Job.group,
        mm.GateHeldJob.at,
        mm.GateHeldJob.reason,
        Job.state,
        Job.active,
        Job.reason,
    ).join(Job, Job.id == mm.GateHeldJob.job_id)
    return {row[0]: HeldJob(*row) for row in session.execute(query)}


def put_held(session: Session, job_id: int, *, at: datetime, reason: str) -> None:
    done = session.execute(
        update(_HELD).where(_HELD.c.job_id == job_id).values(at=at, reason=reason)
    )
    if not getattr(done, "rowcount", 0):
        session.execute(insert(_HELD), {"job_id": job_id, "at": at, "reason": reason})


def drop_held(session: Session, job_ids: Iterable[int]) -> None:
    for part in chunks(sorted(job_ids)):
        session.execute(delete(_HELD).where(_HELD.c.job_id.in_(part)))


def set_committed(session: Session, amounts: Mapping[str, int], *, now: datetime) -> None:
    """Of groups that have an account; the others have no credit to commit."""
    for group, amount in amounts.items():
        session.execute(
            update(mm.Account)
            .where(mm.Account.group == group)
            .values(committed=amount, committed_at=now)
        )
