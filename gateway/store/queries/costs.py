"""What jobs cost: sums for the rows of a list, and all of it for one job's page; and what a
person's groups may still spend."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import and_, bindparam, case, exists, func, or_, select
from sqlalchemy.orm import Session

from gateway.core.pots import PotKind
from gateway.store import money_models as mm
from gateway.store.models import AssociationNow, Job, Run, Submission
from gateway.store.upsert import chunks

MOST_RUNS = 200


@dataclass(frozen=True, slots=True)
class Charged:
    """A job's runs that were charged, or wait for it. `amount` has refunds taken off;
    `last_start` is when the newest of these runs started."""

    amount: int
    reviews: int
    last_start: datetime


@dataclass(frozen=True, slots=True)
class RunCharge:
    """One run's charge. `items` are core.pots.Line as dictionaries."""

    id: int
    run_id: int
    start: datetime
    end: datetime | None
    run_state: str
    qos: str | None
    state: str
    reason: str | None
    amount: int
    card_seconds: int
    items: Sequence[Mapping[str, Any]]
    pending: int | None
    at: datetime


@dataclass(frozen=True, slots=True)
class Move:
    """A correction, or credit given back or taken again, of one charge."""

    charge_id: int
    kind: str  # core.ledger.EntryKind
    amount: int
    at: datetime


@dataclass(frozen=True, slots=True)
class GivenBack:
    """A refund. `evidence` is what the rule, or the person, had to go by."""

    charge_id: int
    reason: str
    evidence: Mapping[str, Any]
    amount: int
    at: datetime
    undone_at: datetime | None


@dataclass(frozen=True, slots=True)
class PotName:
    kind: str
    resource: str | None
    expires: datetime | None


@dataclass(frozen=True, slots=True)
class Held:
    """`amount` is held now, `tasks` x `per_task` were at the submit."""

    tasks: int
    per_task: int
    amount: int
    opened_at: datetime
    closed_at: datetime | None


@dataclass(frozen=True, slots=True)
class JobBill:
    """Everything about one job's money."""

    hold: Held | None
    charges: tuple[RunCharge, ...]
    moves: tuple[Move, ...]
    refunds: tuple[GivenBack, ...]
    pots: Mapping[int, PotName]


@dataclass(frozen=True, slots=True)
class Credit:
    """What a group may spend now: money, less the worst case of running jobs that no hold
    covers; and what lies in packages, which serve one type of GPU only."""

    group: str
    money: int
    packages: int


_SUMS = (
    select(
        Run.job_id,
        func.sum(mm.Charge.amount),
        func.coalesce(func.sum(case((mm.Refund.undone_at.is_(None), mm.Refund.amount))), 0),
        func.sum(case((mm.Charge.state == "review", 1), else_=0)),
        func.max(Run.start_time),
    )
    .join(mm.Charge, mm.Charge.run_id == Run.id)
    .outerjoin(mm.Refund, mm.Refund.charge_id == mm.Charge.id)
    .where(Run.job_id.in_(bindparam("ids", expanding=True)))
    .group_by(Run.job_id)
)
_CHARGES = (
    select(
        mm.Charge.id,
        mm.Charge.run_id,
        Run.start_time,
        Run.end_time,
        Run.state,
        Run.qos,
        mm.Charge.state,
        mm.Charge.reason,
        mm.Charge.amount,
        mm.Charge.card_seconds,
        mm.Charge.items,
        mm.Charge.pending,
        mm.Charge.at,
    )
    .join(Run, Run.id == mm.Charge.run_id)
    .where(Run.job_id == bindparam("of"))
    .order_by(Run.submit_time.desc(), Run.id.desc())
    .limit(MOST_RUNS)
)
_HELD = select(*(getattr(mm.Hold, name) for name in Held.__slots__))
_HELD_OF_SUBMISSION = _HELD.where(mm.Hold.submission_id == bindparam("of"))
_HELD_OF_JOB = (
    _HELD.join(Submission, Submission.id == mm.Hold.submission_id)
    .join(Job, Job.token == Submission.token)
    # Anyone may write our token into a comment: it counts for the one who asked alone.
    .where(Job.id == bindparam("of"), mm.Hold.user == Job.user)
    .limit(1)
)
_PRICED = exists().where(mm.Price.list_name == "site", mm.Price.starts <= bindparam("now"))
_OPEN = and_(
    mm.Pot.group == mm.Account.group,
    or_(
        mm.Pot.kind == PotKind.BALANCE.value,
        and_(
            mm.Pot.starts <= bindparam("now"),
            or_(mm.Pot.expires.is_(None), mm.Pot.expires > bindparam("now")),
        ),
    ),
)
_IS_PACKAGE = mm.Pot.kind == PotKind.PACKAGE.value
# One read for the head of each page: whether the site has prices, and each group's credit.
_SITE = select(_PRICED.label("priced")).subquery()
_CREDIT = (
    select(
        _SITE.c.priced,
        mm.Account.group,
        mm.Account.committed,
        func.coalesce(func.sum(case((_IS_PACKAGE, 0), else_=mm.Pot.left)), 0),
        func.coalesce(func.sum(case((_IS_PACKAGE, mm.Pot.left), else_=0)), 0),
    )
    .select_from(_SITE)
    .outerjoin(mm.Account, mm.Account.group.in_(bindparam("groups", expanding=True)))
    .outerjoin(mm.Pot, _OPEN)
    .group_by(_SITE.c.priced, mm.Account.group, mm.Account.committed)
)


def of_jobs(session: Session, ids: Iterable[int]) -> dict[int, Charged]:
    """For the rows of a list; without the jobs that nothing was charged for yet."""
    found: dict[int, Charged] = {}
    for part in chunks(sorted(set(ids))):
        for job_id, amount, refunded, reviews, start in session.execute(_SUMS, {"ids": list(part)}):
            found[job_id] = Charged(int(amount) - int(refunded), int(reviews), start)
    return found


def of_job(session: Session, job_id: int) -> JobBill:
    """From the first charge to the last; of very many runs, the last MOST_RUNS."""
    held = session.execute(_HELD_OF_JOB, {"of": job_id}).one_or_none()
    rows = session.execute(_CHARGES, {"of": job_id}).all()
    charges = tuple(RunCharge(*tuple(row)) for row in reversed(rows))
    ids = [charge.id for charge in charges]
    return JobBill(
        hold=Held(*held) if held else None,
        charges=charges,
        moves=_moves(session, ids),
        refunds=_refunds(session, ids),
        pots=_pots(session, {line["pot_id"] for one in charges for line in one.items}),
    )


def of_submission(session: Session, submission_id: int) -> Held | None:
    found = session.execute(_HELD_OF_SUBMISSION, {"of": submission_id}).one_or_none()
    return Held(*found) if found else None


def credit(session: Session, groups: Sequence[str], *, now: datetime) -> dict[str, Credit] | None:
    """By group; None on a site that charges nothing (yet)."""
    rows = session.execute(_CREDIT, {"groups": list(groups), "now": now}).all()
    if not rows or not rows[0][0]:
        return None
    found = {name: Credit(name, 0, 0) for name in groups}
    for _, name, committed, money, packages in rows:
        if name is not None:
            found[name] = Credit(name, int(money) - committed, int(packages))
    return found


def default_group(session: Session, user: str) -> str | None:
    """The group that Slurm takes where a job names none."""
    query = select(AssociationNow.account, AssociationNow.facts).where(AssociationNow.user == user)
    found = [name for name, facts in session.execute(query) if facts.get("is_default_account")]
    return found[0] if found else None


def _moves(session: Session, charge_ids: Sequence[int]) -> tuple[Move, ...]:
    if not charge_ids:
        return ()
    query = (
        select(mm.Entry.charge_id, mm.Entry.kind, func.sum(mm.Entry.amount), func.min(mm.Entry.at))
        .where(mm.Entry.charge_id.in_(charge_ids))
        .where(mm.Entry.kind.in_(("correction", "refund", "refund_undone")))
        .group_by(mm.Entry.charge_id, mm.Entry.kind, mm.Entry.key)
        .order_by(func.min(mm.Entry.id))
    )
    return tuple(Move(row[0] or 0, row[1], int(row[2]), row[3]) for row in session.execute(query))


def _refunds(session: Session, charge_ids: Sequence[int]) -> tuple[GivenBack, ...]:
    if not charge_ids:
        return ()
    columns = [getattr(mm.Refund, name) for name in GivenBack.__slots__]
    query = select(*columns).where(mm.Refund.charge_id.in_(charge_ids)).order_by(mm.Refund.id)
    return tuple(GivenBack(*row) for row in session.execute(query))


def _pots(session: Session, ids: Iterable[int]) -> dict[int, PotName]:
    wanted = sorted(set(ids))
    if not wanted:
        return {}
    query = select(mm.Pot.id, mm.Pot.kind, mm.Pot.resource, mm.Pot.expires).where(
        mm.Pot.id.in_(wanted)
    )
    return {row[0]: PotName(*row[1:]) for row in session.execute(query)}
