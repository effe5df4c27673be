"""What the gate decides by: open jobs and what covers them, rules, holds, caps. Reads only."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import and_, case, func, or_, select, text
from sqlalchemy.orm import Session

from gateway.store import ledger
from gateway.store import money_models as mm
from gateway.store.charges import TO_SETTLE, is_same_job
from gateway.store.ledger import AccountRow
from gateway.store.models import AssociationNow, Event, Job, Poll, Run, Submission, table_of
from gateway.store.upsert import chunks

_J, _S, _H = table_of(Job).c, table_of(Submission).c, table_of(mm.Hold).c
_LINKED = table_of(Job).alias("linked")
_ROOT = "root"
_ON_ITS_WAY = ("queued", "sending", "unknown")


@dataclass(frozen=True, slots=True)
class JobRow:
    """An open job, or one that ended and is not charged yet. The last four are of the open
    hold of its submission, None without one; `asked` is the request that it was for."""

    id: int
    slurm_id: int
    user: str
    group: str
    partition: str
    qos: str | None
    state: str
    active: bool
    reason: str | None
    submit_time: datetime
    start_time: datetime | None
    end_time: datetime | None
    left_queue_at: datetime | None
    time_limit_minutes: int | None
    gpus: int
    gpu_type: str | None
    cpus: int
    array_task: int | None
    array_tasks: int | None
    restarts: int
    asked: dict[str, Any] | None
    held: int | None
    per_task: int | None
    tasks: int | None

    @property
    def asked_minutes(self) -> int | None:
        return self.asked.get("time_limit_minutes") if self.asked else None


@dataclass(frozen=True, slots=True)
class SendingRow:
    """A submission with an open hold that Slurm may not have yet."""

    group: str
    user: str
    card_minutes: int


@dataclass(frozen=True, slots=True)
class CapRow:
    """A member's cap and what is spent of it since the month began, holds included."""

    group: str
    user: str
    per_month: int
    spent: int


_JOB = (
    *(_J["group_name" if name == "group" else name] for name in list(JobRow.__slots__)[:20]),
    case((_H.id.is_not(None), _S.request), else_=None),
    _H.amount,
    _H.per_task,
    _H.tasks,
)
_COVERED = (
    select(*_JOB)
    .select_from(Job)
    .outerjoin(Submission, _S.token == _J.token)
    .outerjoin(_LINKED, _LINKED.c.id == _S.job_id)
    .outerjoin(
        mm.Hold,
        and_(
            _H.submission_id == _S.id,
            is_same_job(_J, _LINKED.c),
            _H.closed_at.is_(None),
            _H.user == _J.user,
            _H.group_name == _J.group_name,
        ),
    )
)


def groups(session: Session) -> list[str]:
    """Every account that Slurm has an association for."""
    query = select(AssociationNow.account).distinct().where(AssociationNow.account != _ROOT)
    return sorted(session.scalars(query))


def open_jobs(session: Session, cluster: str, *, ended_since: datetime) -> list[JobRow]:
    """Whether their groups have credit or not. What ended counts until its charge is there:
    accounting tells of an end some moments after the queue."""
    # As the partial index says it.
    over = and_(text("not job.active and not job.accounted"), _J.end_time >= ended_since)
    parts = (_J.active.is_(True), over)
    return [
        JobRow(*row)
        for part in parts
        for row in session.connection().execute(_COVERED.where(part, _J.cluster == cluster))
    ]


def uncharged(session: Session, cluster: str, *, since: datetime) -> list[JobRow]:
    """Jobs whose run accounting has told the end of, and which nobody has settled yet."""
    runs = select(Run.job_id).where(TO_SETTLE, Run.start_time >= since)
    query = _COVERED.where(_J.id.in_(runs), _J.cluster == cluster, _J.accounted, ~_J.active)
    return [JobRow(*row) for row in session.connection().execute(query)]


def job(session: Session, job_id: int) -> JobRow | None:
    found = session.connection().execute(_COVERED.where(_J.id == job_id)).first()
    return JobRow(*found) if found else None


def limits_paid_for(session: Session, job_ids: Iterable[int]) -> dict[int, int]:
    """The longest limit that the portal itself has set, or may have set, and held credit for. What
    was set for an array while a task of it waited is the task's too."""
    found: dict[int, int] = {}
    array = table_of(Job).alias("array")
    of_array = and_(
        array.c.cluster == _J.cluster,
        array.c.slurm_id == _J.array_job_id,
        array.c.token == _J.token,
        array.c.user == _J.user,
    )
    as_it_waited = Event.at <= func.coalesce(_J.start_time, Event.at)
    its_own = select(_J.id, Event.detail).join(Event, Event.job_id == _J.id)
    its_arrays = (
        select(_J.id, Event.detail)
        .join(array, of_array)
        .join(Event, and_(Event.job_id == array.c.id, as_it_waited))
    )
    for part in chunks(sorted(set(job_ids))):
        for query in (its_own, its_arrays):
            wanted = query.where(_J.id.in_(part), Event.kind.in_(("set_time_limit", "extend")))
            for job_id, detail in session.execute(wanted):
                if detail.get("outcome") in {"done", "unknown"}:
                    found[job_id] = max(found.get(job_id, 0), int(detail.get("minutes") or 0))
    return found


def stopped(session: Session, job_ids: Iterable[int]) -> dict[int, datetime]:
    """When the gate last gave each of these jobs a last stretch."""
    found: dict[int, datetime] = {}
    for part in chunks(sorted(set(job_ids))):
        last = func.max(Event.at, type_=Event.at.type)
        query = (
            select(Event.job_id, last)
            .where(Event.job_id.in_(part), Event.kind == "gate_stop")
            .group_by(Event.job_id)
        )
        found |= {row[0]: row[1] for row in session.execute(query) if row[0] is not None}
    return found


def kept(session: Session) -> dict[str, int]:
    """What each group's open holds keep."""
    query = (
        select(_H.group_name, func.sum(_H.amount))
        .where(_H.closed_at.is_(None))
        .group_by(_H.group_name)
    )
    return {row[0]: int(row[1]) for row in session.execute(query)}


def sending(session: Session, *, since: datetime, waiting_code: str) -> list[SendingRow]:
    """Young ones, and those that Slurm turned away at a gate that was shut."""
    request: Any = Submission.request
    query = (
        select(
            _H.group_name,
            _H.user,
            request["nodes"].as_integer(),
            request["gpus_per_node"].as_integer(),
            request["time_limit_minutes"].as_integer(),
            _H.tasks,
        )
        .select_from(Submission)
        .join(mm.Hold, and_(_H.submission_id == _S.id, _H.closed_at.is_(None)))
        .where(_S.state.in_(_ON_ITS_WAY))
        .where(or_(_H.opened_at >= since, _S.error_code == waiting_code))
    )
    return [
        SendingRow(row[0], row[1], (row[2] or 0) * (row[3] or 0) * (row[4] or 0) * row[5])
        for row in session.execute(query)
    ]


def accounts(session: Session) -> dict[str, AccountRow]:
    columns = [getattr(mm.Account, name) for name in AccountRow.__slots__]
    return {row[0]: AccountRow(*row) for row in session.execute(select(*columns))}


def caps(session: Session, *, since: datetime) -> list[CapRow]:
    columns = (mm.MemberCap.group, mm.MemberCap.user, mm.MemberCap.per_month)
    rows = session.execute(select(*columns).order_by(*columns[:2])).all()
    return [CapRow(*row, ledger.spent(session, row[0], row[1], since=since)) for row in rows]


def pulse(session: Session) -> tuple[object, ...]:
    """Changes whenever the gate may have to decide anew; cheap to ask for."""
    reads = session.execute(
        select(Poll.name, Poll.succeeded_at).where(Poll.name.in_(("queue", "policy", "cluster")))
    )
    newest = [
        session.scalar(select(func.max(column)))
        for column in (mm.Entry.id, mm.Price.id, mm.QosTerms.id, mm.Hold.id, Event.id)
    ]
    return (*sorted(tuple(row) for row in reads), *newest)
