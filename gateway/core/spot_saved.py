"""What spot really saved: what was charged, against the same work where nobody preempts it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from gateway.core.credits import Credits
from gateway.core.pricing import Item, PriceList, cost
from gateway.core.qos import Qos

_NOT_REQUEUED = frozenset({"cancel", "suspend"})


@dataclass(frozen=True, slots=True)
class PaidRun:
    """One run as it was charged, `charged` without what was given back. `items` are at the list
    price of its start; None where a package paid: its price is another. `again` is the share of
    its card-seconds in which steps were made again or the training started again; None: nobody
    measured it."""

    start: datetime
    end: datetime
    preempted: bool
    items: tuple[Item, ...] | None
    charged: Credits
    again: float | None


@dataclass(frozen=True, slots=True)
class Saved:
    """`elsewhere` is what the work without its repetitions would have cost in QoS `normal` by the
    prices then in force; None where a package paid. `waited` are the waits after preemptions,
    `again` what was made again, None where a run did not tell: then `elsewhere` is at most that,
    and what was saved as well."""

    qos: str
    normal: str
    runs: int
    preempted: int
    charged: Credits
    elsewhere: Credits | None
    waited: timedelta
    again: timedelta | None

    @property
    def money(self) -> Credits | None:
        """Below zero: spot cost more."""
        return None if self.elsewhere is None else Credits(self.elsewhere - self.charged)

    @property
    def later(self) -> timedelta:
        """By how much it was done later, as far as that is known."""
        return self.waited + (self.again or timedelta())


def saved(runs: Sequence[PaidRun], *, qos: str, normal: str, prices: PriceList) -> Saved | None:
    """Of a job's runs in order; None where it has none. A run that follows no preemption makes
    nothing again for one."""
    if not runs:
        return None
    after = [False, *(before.preempted for before in runs[:-1])]
    shares = [run.again if follows else 0.0 for run, follows in zip(runs, after, strict=True)]
    priced = [
        _elsewhere(run, share or 0.0, normal, prices)
        for run, share in zip(runs, shares, strict=True)
    ]
    known = [one for one in priced if one is not None]
    return Saved(
        qos=qos,
        normal=normal,
        runs=len(runs),
        preempted=sum(run.preempted for run in runs),
        charged=Credits(sum(run.charged for run in runs)),
        elsewhere=Credits(sum(known)) if len(known) == len(priced) else None,
        waited=sum(
            (later.start - run.end for run, later in pairwise(runs) if run.preempted), timedelta()
        ),
        again=_again(runs, shares),
    )


def spot_qos(levels: Iterable[Qos]) -> frozenset[str]:
    """Those that another QoS may preempt, whose jobs come back; names as Slurm keeps them."""
    found = list(levels)
    preempted = {name.casefold() for level in found for name in level.preempts}
    return frozenset(
        level.name
        for level in found
        if level.name.casefold() in preempted and not _NOT_REQUEUED & set(level.preempt_mode)
    )


def steady_qos(levels: Iterable[Qos]) -> str:
    """What spot is compared with: `normal`, Slurm's own, unless it may be preempted itself; else
    the least urgent that may not. Empty where there is none."""
    found = list(levels)
    preempted = {name.casefold() for level in found for name in level.preempts}
    steady = [level for level in found if level.name.casefold() not in preempted]
    return min(
        (level.name for level in steady if level.name == "normal"),
        default=min(((level.priority, level.name) for level in steady), default=(0, ""))[1],
    )


def _elsewhere(run: PaidRun, again: float, normal: str, prices: PriceList) -> int | None:
    if run.items is None:
        return None
    factor = prices.factor_millionths(normal, run.start)
    return sum(
        cost(item.unit_seconds - int(item.unit_seconds * again), item.per_hour, factor)
        for item in run.items
    )


def _again(runs: Sequence[PaidRun], shares: Sequence[float | None]) -> timedelta | None:
    parts = [
        (run.end - run.start) * share
        for run, share in zip(runs, shares, strict=True)
        if share is not None
    ]
    return sum(parts, timedelta()) if len(parts) == len(runs) else None
