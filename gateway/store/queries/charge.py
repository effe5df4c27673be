"""One charge with its lines, and the run that it is for."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session, aliased

from gateway.store import money_models as mm
from gateway.store.models import Job, Person, Run


@dataclass(frozen=True, slots=True)
class ChargeDetail:
    """`items` are core.pots.Line as dictionaries."""

    id: int
    group: str
    user: str
    state: str
    reason: str | None
    amount: int
    card_seconds: int
    items: list[dict[str, Any]]
    pending: int | None
    version: int
    at: datetime
    decision: dict[str, Any] | None
    decided_by: str | None
    run_id: int
    run_state: str
    qos: str | None
    start: datetime
    end: datetime | None
    elapsed_seconds: int
    alloc_tres: str
    node_list: str | None
    job_id: int
    slurm_id: int
    array_job_id: int | None
    array_task: int | None
    job_name: str


@dataclass(frozen=True, slots=True)
class ChargeEntry:
    id: int
    at: datetime
    kind: str
    amount: int
    pot_id: int
    pot_kind: str
    pot_reason: str
    by: str | None
    note: str | None


@dataclass(frozen=True, slots=True)
class RefundDetail:
    reason: str
    evidence: dict[str, Any]
    amount: int
    at: datetime
    by: str | None
    undone_at: datetime | None
    undone_by: str | None


def charge(session: Session, charge_id: int) -> ChargeDetail | None:
    c = mm.Charge
    query = (
        select(
            c.id,
            c.group,
            c.user,
            c.state,
            c.reason,
            c.amount,
            c.card_seconds,
            c.items,
            c.pending,
            c.version,
            c.at,
            c.decision,
            Person.login,
            Run.id,
            Run.state,
            Run.qos,
            Run.start_time,
            Run.end_time,
            Run.elapsed_seconds,
            Run.alloc_tres,
            Run.node_list,
            Job.id,
            Job.slurm_id,
            Job.array_job_id,
            Job.array_task,
            Job.name,
        )
        .join(Run, Run.id == c.run_id)
        .join(Job, Job.id == Run.job_id)
        .outerjoin(Person, Person.id == c.decided_by)
        .where(c.id == charge_id)
    )
    found = session.execute(query).one_or_none()
    return ChargeDetail(*tuple(found)) if found else None


def entries(session: Session, charge_id: int) -> list[ChargeEntry]:
    """Oldest first."""
    entry = mm.Entry
    query = (
        select(
            entry.id,
            entry.at,
            entry.kind,
            entry.amount,
            mm.Pot.id,
            mm.Pot.kind,
            mm.Pot.reason,
            Person.login,
            entry.note,
        )
        .join(mm.Pot, mm.Pot.id == entry.pot_id)
        .outerjoin(Person, Person.id == entry.person_id)
        .where(entry.charge_id == charge_id)
        .order_by(entry.id)
    )
    return [ChargeEntry(*row) for row in session.execute(query)]


def refund(session: Session, charge_id: int) -> RefundDetail | None:
    gave, undid = aliased(Person), aliased(Person)
    query = (
        select(
            mm.Refund.reason,
            mm.Refund.evidence,
            mm.Refund.amount,
            mm.Refund.at,
            gave.login,
            mm.Refund.undone_at,
            undid.login,
        )
        .outerjoin(gave, gave.id == mm.Refund.person_id)
        .outerjoin(undid, undid.id == mm.Refund.undone_by)
        .where(mm.Refund.charge_id == charge_id)
    )
    found = session.execute(query).one_or_none()
    return RefundDetail(*found) if found else None
