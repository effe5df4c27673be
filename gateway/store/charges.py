"""Runs that are to be settled, and what was charged for them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, false, func, insert, literal, select, update
from sqlalchemy.orm import Session

from gateway.store import money_models as mm
from gateway.store.models import Event, Job, Person, Run, Submission, table_of
from gateway.store.upsert import chunks, insert_if_new

_CHARGE, _REFUND, _RUN = table_of(mm.Charge), table_of(mm.Refund), table_of(Run)
_JOB, _HOLD, _SUBMISSION = table_of(Job), table_of(mm.Hold), table_of(Submission)
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
    .outerjoin(
        _HOLD,
        # Anyone may write our token into a comment: it counts for the one who asked alone.
        (_HOLD.c.submission_id == _SUBMISSION.c.id)
        & (_HOLD.c.user == _RUN.c.user)
        & (_HOLD.c.group_name == _RUN.c.group_name),
    )
    .where(_RUN.c.to_settle, _RUN.c.end_time.is_not(None))
    .order_by(_RUN.c.id)
    .limit(bindparam("most"))
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


def due(session: Session, *, most: int) -> list[DueRun]:
    """The oldest runs that are to be settled."""
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
    """The id that the next charge may take; the caller is the only one who adds charges."""
    return int(session.scalar(select(func.coalesce(func.max(_C.id), literal(0)))) or 0) + 1


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


def look_again(session: Session, reasons: Sequence[str]) -> None:
    """Settle the runs anew that wait in the review for one of these reasons."""
    waiting = select(_C.run_id).where(_C.state == "review", _C.reason.in_(reasons))
    session.execute(update(_RUN).where(_RUN.c.id.in_(waiting)).values(to_settle=True))


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


def given_back(session: Session, charge_id: int) -> dict[int, int]:
    """What the charge's refund has put into each pot so far."""
    entry = table_of(mm.Entry).c
    query = (
        select(entry.pot_id, func.sum(entry.amount))
        .where(entry.charge_id == charge_id, entry.kind.in_(("refund", "refund_undone")))
        .group_by(entry.pot_id)
    )
    return {pot_id: int(amount) for pot_id, amount in session.execute(query) if amount}


def entries_of(session: Session, charge_id: int) -> int:
    """How many lines the charge has: makes the next key."""
    entry = table_of(mm.Entry).c
    query = select(func.count()).where(entry.charge_id == charge_id)
    return int(session.scalar(query) or 0)


def administrators_kill(session: Session, job_ids: Sequence[int]) -> dict[int, dict[str, Any]]:
    """Cancels by somebody with the administrator's role who is not the job's owner: by job, the
    evidence of the last one."""
    found: dict[int, dict[str, Any]] = {}
    for part in chunks(job_ids):
        query = (
            select(Event.job_id, Event.id, Event.at, Person.login)
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
        for job_id, event_id, at, login in session.execute(query):
            found[int(job_id or 0)] = {"event_id": event_id, "at": at.isoformat(), "by": login}
    return found
