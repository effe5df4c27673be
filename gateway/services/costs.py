"""What jobs have cost: charged, and what they have accrued that nobody charged yet."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from gateway.core.accrual import Elsewhere, OnNodes, accrued, in_cheapest_qos
from gateway.core.credits import Credits
from gateway.core.pricing import Item, PriceList
from gateway.core.states import parse_state
from gateway.services import node_types
from gateway.store import prices
from gateway.store.queries import costs
from gateway.store.queries.costs import Charged, JobBill

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from gateway.store.queries.jobs import JobRow

KindOf = Callable[[str | None, str], str | None]


@dataclass(frozen=True, slots=True)
class JobCost:
    """`charged` has refunds taken off; None: no run was charged. `accrued` is an estimate for
    the stretch on nodes that is not charged yet; None: there is none, or nobody can say.
    `reviews` runs wait for a person."""

    charged: Credits | None
    accrued: Credits | None
    reviews: int

    @property
    def total(self) -> Credits | None:
        if self.charged is None and self.accrued is None:
            return None
        return Credits((self.charged or 0) + (self.accrued or 0))

    @property
    def is_final(self) -> bool:
        return self.accrued is None and not self.reviews


def of_jobs(
    session: "Session", rows: Iterable["JobRow"], *, now: datetime
) -> dict[int, JobCost] | None:
    """For the rows of a list, in two reads; None on a site that charges nothing."""
    price_list = prices.load(session)
    if not price_list.is_on(now):
        return None
    jobs = list(rows)
    charged = costs.of_jobs(session, (job.id for job in jobs))
    kind_of = _kinds(session)
    return {
        job.id: _cost(job, charged.get(job.id), until=now, prices=price_list, kind_of=kind_of)
        for job in jobs
    }


@dataclass(frozen=True, slots=True)
class JobMoney:
    """One job's page: the sum, all lines, and what a cheaper QoS would have cost."""

    cost: JobCost
    bill: JobBill
    cheaper: Elsewhere | None


def of_job(
    session: "Session", job: "JobRow", *, now: datetime, gone_at: datetime | None = None
) -> JobMoney | None:
    """None on a site that charges nothing. `gone_at`: when the queue lost sight of the job."""
    price_list = prices.load(session)
    if not price_list.is_on(now):
        return None
    found = costs.of_job(session, job.id)
    charged = costs.of_jobs(session, [job.id]).get(job.id)
    cost = _cost(job, charged, until=gone_at or now, prices=price_list, kind_of=_kinds(session))
    return JobMoney(cost, found, _cheaper(found, job.qos, price_list))


def _cost(
    job: "JobRow", charged: Charged | None, *, until: datetime, prices: PriceList, kind_of: KindOf
) -> JobCost:
    amount = None if charged is None else Credits(charged.amount)
    reviews = charged.reviews if charged else 0
    if job.start_time is None or parse_state(job.state)[0].is_pending:
        return JobCost(amount, None, reviews)
    if charged is not None and job.start_time <= charged.last_start:
        return JobCost(amount, None, reviews)
    # What Slurm calls the end of a job that runs is only its limit.
    ended = None if job.active else job.end_time
    stretch = OnNodes(
        start=job.start_time,
        until=ended or until,
        limit_minutes=job.time_limit_minutes,
        gpus=job.gpus,
        kind=job.gpu_type or (kind_of(job.node_list, job.partition) if job.gpus else None),
        cpus=job.cpus,
        qos=job.qos,
    )
    return JobCost(amount, accrued(stretch, prices), reviews)


def _kinds(session: "Session") -> KindOf:
    """The types of the nodes, read when the first job lacks its own."""
    found: list[KindOf] = []

    def kind_of(node_list: str | None, partition: str) -> str | None:
        if not found:
            found.append(node_types.reader(session))
        return found[0](node_list, partition)

    return kind_of


def _cheaper(found: JobBill, own: str | None, prices: PriceList) -> Elsewhere | None:
    """By the list prices of each run's start. None where a package paid: its price is another."""
    used = []
    for charge in found.charges:
        if charge.state != "posted":
            return None
        for line in charge.items:
            at_list = prices.price(line["resource"], charge.start)
            if at_list is None or line["per_hour"] != at_list:
                return None
            item = Item(
                line["resource"], 1, line["unit_seconds"], at_list, line["factor_millionths"]
            )
            used.append((item, charge.start))
    return in_cheapest_qos(used, own, prices)
