"""Runs that are to be settled, and what was charged for them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    and_,
    bindparam,
    exists,
    false,
    func,
    insert,
    literal,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.orm import Session

from gateway.core.billing import Doubt, RefundReason
from gateway.store import history
from gateway.store import money_models as mm
from gateway.store.models import Event, Job, Person, Run, Submission, table_of
from gateway.store.upsert import chunks, insert_if_new

_CHARGE, _REFUND, _RUN = table_of(mm.Charge), table_of(mm.Refund), table_of(Run)
_JOB, _HOLD, _SUBMISSION = table_of(Job), table_of(mm.Hold), table_of(Submission)
_LINKED = _JOB.alias("linked")
_C = _CHARGE.c


@dataclass(frozen=True, slots=True)
class DueRun:
    """A run that ended and is not settled as it is now. `hold_id`: its submission's hold."""

    id: int
    job_id: int
    user: str
    group: str
    partition: str
    qos: str | None
    state: str
    start: datetime
    end: datetime
    elapsed_seconds: int
    suspended_seconds: int
    cpus: int
    gpus: int | None
    alloc_tres: str
    node_list: str | None
    cancelled_by: str | None
    seen_until: datetime | None
    job_active: bool
    time_limit_minutes: int | None
    hold_id: int | None


@dataclass(frozen=True, slots=True)
class ChargeRow:
    id: int
    run_id: int
    group: str
    user: str
    state: str
    reason: str | None
    amount: int
    card_seconds: int
    items: list[Any]
    pending: int | None
    version: int
    at: datetime
    decision: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class RefundRow:
    id: int
    charge_id: int
    reason: str
    evidence: dict[str, Any]
    amount: int
    at: datetime
    undone_at: datetime | None

    @property
    def by_rule(self) -> bool:
        return self.reason != RefundReason.PORTAL_FAULT.value


@dataclass(frozen=True, slots=True)
class Kill:
    """An administrator ended somebody's job."""

    event_id: int
    at: datetime
    by: str

    def evidence(self) -> dict[str, Any]:
        return {"event_id": self.event_id, "at": self.at.isoformat(), "by": self.by}


_ONE_AT_A_TIME = text("select pg_advisory_xact_lock(7101)")
# As the partial index says it: SQLite does not see that `to_settle = 1` is the same.
TO_SETTLE = text("run.to_settle")


def is_same_job(job: Any, linked: Any) -> Any:
    """Whether `job` is the one that its submission is linked to, or a task of that array."""
    of_its_array = and_(
        job.array_job_id.is_not(None),
        job.array_job_id == linked.array_job_id,
        job.cluster == linked.cluster,
    )
    return or_(job.id == linked.id, of_its_array)


_DUE = (
    select(
        _RUN.c.id,
        _RUN.c.job_id,
        _RUN.c.user,
        _RUN.c.group_name,
        _RUN.c.partition,
        _RUN.c.qos,
        _RUN.c.state,
        _RUN.c.start_time,
        _RUN.c.end_time,
        _RUN.c.elapsed_seconds,
        _RUN.c.suspended_seconds,
        _RUN.c.cpus,
        _RUN.c.gpus,
        _RUN.c.alloc_tres,
        _RUN.c.node_list,
        _RUN.c.cancelled_by,
        _RUN.c.seen_until,
        _JOB.c.active,
        _JOB.c.time_limit_minutes,
        _HOLD.c.id,
    )
    .join(_JOB, _JOB.c.id == _RUN.c.job_id)
    .outerjoin(_SUBMISSION, _SUBMISSION.c.token == _JOB.c.token)
    .outerjoin(_LINKED, _LINKED.c.id == _SUBMISSION.c.job_id)
    .outerjoin(
        _HOLD,
        # Anyone may write our token into a comment: the hold is of the one job that was linked.
        (_HOLD.c.submission_id == _SUBMISSION.c.id)
        & is_same_job(_JOB.c, _LINKED.c)
        & (_HOLD.c.user == _RUN.c.user)
        & (_HOLD.c.group_name == _RUN.c.group_name),
    )
    .where(TO_SETTLE, _RUN.c.end_time.is_not(None))
    .order_by(_RUN.c.id)
    .limit(bindparam("most"))
    # A correction that comes meanwhile waits, and is settled after this.
    .with_for_update(of=_RUN)
)
_COLUMNS = tuple(_C["group_name" if n == "group" else n] for n in ChargeRow.__slots__)
_ADD = insert(_CHARGE)
_SETTLED = update(_RUN).where(_RUN.c.id == bindparam("of")).values(to_settle=false())
_CHANGE = (
    update(_CHARGE)
    .where(_C.id == bindparam("of"))
    .values(
        {
            name: bindparam(f"to_{name}")
            for name in (
                "group_name",
                "user",
                "state",
                "reason",
                "amount",
                "card_seconds",
                "items",
                "pending",
                "version",
                "at",
            )
        }
    )
)


def lock(session: Session) -> None:
    """One at a time gives out ids of charges, also on PostgreSQL."""
    if session.get_bind().dialect.name != "sqlite":
        session.execute(_ONE_AT_A_TIME)


def any_due(session: Session) -> bool:
    """Whether a run is to be settled; takes no lock."""
    query = select(_RUN.c.id).where(TO_SETTLE, _RUN.c.end_time.is_not(None)).limit(1)
    return session.scalar(query) is not None


def due(session: Session, *, most: int) -> list[DueRun]:
    """The oldest runs that are to be settled, theirs alone until the transaction ends."""
    return [DueRun(*tuple(row)) for row in session.execute(_DUE, {"most": most})]


def of_runs(session: Session, run_ids: Sequence[int]) -> dict[int, ChargeRow]:
    found: dict[int, ChargeRow] = {}
    for part in chunks(run_ids):
        rows = session.execute(select(*_COLUMNS).where(_C.run_id.in_(part)))
        found |= {row[1]: ChargeRow(*row) for row in rows}
    return found


def get(session: Session, charge_id: int) -> ChargeRow | None:
    found = session.execute(select(*_COLUMNS).where(_C.id == charge_id)).one_or_none()
    return ChargeRow(*found) if found else None


def next_id(session: Session) -> int:
    """The id that the next charge may take; the caller holds `lock`."""
    return int(session.scalar(select(func.coalesce(func.max(_C.id), literal(0)))) or 0) + 1


def new_review(
    run_id: int,
    group: str,
    user: str,
    reason: Doubt,
    *,
    now: datetime,
    pending: int | None = None,
) -> dict[str, Any]:
    """A run for a person to look at: nothing is charged yet. The id is still to be given."""
    return {
        "run_id": run_id,
        "group_name": group,
        "user": user,
        "state": "review",
        "reason": reason.value,
        "amount": 0,
        "card_seconds": 0,
        "items": [],
        "pending": pending,
        "version": 0,
        "at": now,
        "decision": None,
        "decided_by": None,
    }


def doubt(session: Session, charge_id: int, reason: str) -> None:
    session.execute(update(_CHARGE).where(_C.id == charge_id).values(reason=reason))


def add_all(session: Session, rows: Sequence[dict[str, Any]]) -> None:
    if rows:
        session.connection().execute(_ADD, list(rows))


def change_all(session: Session, rows: Sequence[dict[str, Any]]) -> None:
    """Rows of id and every column that a new version may change."""
    if rows:
        values = [{("of" if k == "id" else f"to_{k}"): v for k, v in row.items()} for row in rows]
        session.connection().execute(_CHANGE, values)


def settled(session: Session, run_ids: Sequence[int]) -> None:
    if run_ids:
        session.connection().execute(_SETTLED, [{"of": run_id} for run_id in run_ids])
        history.mark_runs(session, run_ids)


def look_again(session: Session, reasons: Sequence[str]) -> None:
    """Settle the runs anew that wait in the review for one of these reasons."""
    waiting = select(_C.run_id).where(_C.state == "review", _C.reason.in_(reasons))
    session.execute(update(_RUN).where(_RUN.c.id.in_(waiting)).values(to_settle=True))


def look_at_passed_over(session: Session, *, since: datetime) -> None:
    """Settle runs that ended since then and have no charge: charging began later until now."""
    charged = exists().where(_C.run_id == _RUN.c.id)
    passed = (_RUN.c.end_time.is_not(None), _RUN.c.start_time >= since, ~charged)
    session.execute(update(_RUN).where(*passed).values(to_settle=True))


def look_again_at(session: Session, run_id: int) -> None:
    session.execute(update(_RUN).where(_RUN.c.id == run_id).values(to_settle=True))


def decide(
    session: Session, charge_id: int, decision: dict[str, Any], *, person_id: int | None
) -> None:
    values = {"decision": decision, "decided_by": person_id}
    session.execute(update(_CHARGE).where(_C.id == charge_id).values(values))


def refunds(session: Session, charge_ids: Iterable[int]) -> dict[int, RefundRow]:
    """By charge; also those that were undone."""
    columns = [getattr(mm.Refund, name) for name in RefundRow.__slots__]
    found: dict[int, RefundRow] = {}
    for part in chunks(sorted(set(charge_ids))):
        rows = session.execute(select(*columns).where(mm.Refund.charge_id.in_(part)))
        found |= {row[1]: RefundRow(*row) for row in rows}
    return found


def add_refund(session: Session, row: dict[str, Any]) -> int | None:
    """None when the charge has been refunded before, also when that was undone."""
    return insert_if_new(session, _REFUND, row)


def change_refund(session: Session, refund_id: int, **values: Any) -> None:
    session.execute(update(_REFUND).where(_REFUND.c.id == refund_id).values(**values))


def drawn(session: Session, charge_ids: Iterable[int]) -> dict[int, dict[int, int]]:
    """What each charge took from each pot so far, refunds not counted."""
    entry = table_of(mm.Entry).c
    found: dict[int, dict[int, int]] = {}
    for part in chunks(sorted(set(charge_ids))):
        query = (
            select(entry.charge_id, entry.pot_id, -func.sum(entry.amount))
            .where(entry.charge_id.in_(part), entry.kind.in_(("charge", "correction")))
            .group_by(entry.charge_id, entry.pot_id)
        )
        for charge_id, pot_id, amount in session.execute(query):
            found.setdefault(charge_id, {})[pot_id] = int(amount)
    return found


def given_back(session: Session, charge_id: int, *, group: str) -> dict[int, int]:
    """What the charge's refund has put into each pot of the group so far."""
    entry = table_of(mm.Entry).c
    query = (
        select(entry.pot_id, func.sum(entry.amount))
        .where(entry.charge_id == charge_id, entry.kind.in_(("refund", "refund_undone")))
        .where(entry.group_name == group)
        .group_by(entry.pot_id)
    )
    return {pot_id: int(amount) for pot_id, amount in session.execute(query) if amount}


def administrators_kill(session: Session, job_ids: Sequence[int]) -> dict[int, list[Kill]]:
    """Cancels by somebody with the administrator's role who is not the job's owner, by job;
    those that Slurm refused ended nothing."""
    found: dict[int, list[Kill]] = {}
    for part in chunks(job_ids):
        query = (
            select(Event.job_id, Event.id, Event.at, Person.login, Event.detail)
            .join(Person, Person.id == Event.person_id)
            .join(Job, Job.id == Event.job_id)
            .where(
                Event.job_id.in_(part),
                Event.kind == "cancel",
                Person.role == "administrator",
                Person.unix_user != Job.user,
            )
            .order_by(Event.id)
        )
        for job_id, event_id, at, login, detail in session.execute(query):
            if detail.get("outcome") in {"done", "unknown"}:
                found.setdefault(int(job_id or 0), []).append(Kill(event_id, at, login))
    return found
