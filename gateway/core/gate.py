"""The gate's decisions: what a group that cannot pay may still do in Slurm.

A group's money is its pots less its holds. What jobs without a hold may cost (plain sbatch) is
taken off in the order of submission: what runs already, then what waits, as long as it can be
paid. The rest waits behind the gate, and with nothing left the group is shut for new jobs.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from gateway.core import pots as laying
from gateway.core.gate_cost import OpenJob, Rates, Weighed, cheapest, minutes_for, weigh
from gateway.core.ledger import AtZero
from gateway.core.pots import Pot, PotKind, the_balance
from gateway.core.pricing import Bill, PriceList

# Card-minutes by which the cap in Slurm may be off before it is written anew, or a tenth.
_SLACK_MINUTES = 30


class Mode(StrEnum):
    """What the site lets the gate do."""

    OFF = "off"
    WATCH = "watch"
    ENFORCE = "enforce"


class Why(StrEnum):
    """Why a job waits behind the gate, or why it is shut."""

    NOT_ENOUGH_CREDIT = "not_enough_credit"
    NO_TIME_LIMIT = "no_time_limit"
    MEMBER_CAP = "member_cap"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Sending:
    """A submission with a hold that Slurm has not got yet."""

    user: str
    card_minutes: int


@dataclass(frozen=True, slots=True)
class Member:
    """Somebody with a cap: what of it is left this month, holds taken off."""

    user: str
    left: int


@dataclass(frozen=True, slots=True)
class Group:
    """`pots` are those that may pay now, in the order of use; `kept` is what open holds keep."""

    name: str
    pots: tuple[Pot, ...]
    kept: int
    at_zero: AtZero
    overdraft: int
    warning_minutes: int
    jobs: tuple[OpenJob, ...]
    sending: tuple[Sending, ...] = ()
    members: tuple[Member, ...] = ()


@dataclass(frozen=True, slots=True)
class Limits:
    """Of an association. None: no limit."""

    submit: int | None
    run_minutes: int | None


@dataclass(frozen=True, slots=True)
class Ruling:
    """For a group or one member: shut for new jobs, and how many card-minutes may run.
    `run_least` of them are needed by what runs, waits and is paid."""

    user: str | None
    closed: bool
    why: Why
    run_minutes: int | None
    run_least: int = 0

    def limits(self, own: Limits) -> Limits:
        """With the site's own limits, the tighter of each."""
        submit = 0 if self.closed else own.submit
        return Limits(submit, _tighter(own.run_minutes, self.run_minutes))


@dataclass(frozen=True, slots=True)
class Decision:
    """`committed` is the worst case of open jobs without a hold, `free` what is left for new
    ones, `now` the money after what has been used so far. `stop`: job ids and their new limits
    in minutes. `no_price`: GPU types in use that nobody has priced."""

    group: str
    committed: int
    free: int
    now: int
    need: int
    rulings: tuple[Ruling, ...]
    hold: tuple[tuple[int, Why], ...]
    pay: tuple[int, ...]
    stop: tuple[tuple[int, int], ...]
    no_price: tuple[str, ...]

    @property
    def closed(self) -> bool:
        return self.rulings[0].closed


@dataclass(slots=True)
class _Purse:
    """What is left while the jobs are laid over it, one after the other."""

    pots: list[Pot]
    members: dict[str, int]
    committed: int = 0
    endless: bool = False

    @property
    def free(self) -> int:
        return 0 if self.endless else sum(pot.left for pot in self.pots)

    def draw(self, one: Weighed) -> None:
        bill = one.bill
        if bill is None:
            self.endless = True
            bill = Bill(())
        by_pot = laying.lay(bill, self.pots).by_pot() if bill.items else {}
        short = one.job.shortage
        if short:
            balance = the_balance(self.pots).id
            by_pot[balance] = by_pot.get(balance, 0) + short
        self.pots = laying.after(self.pots, {pot: -amount for pot, amount in by_pot.items()})
        self.committed += one.total
        if one.job.user in self.members:
            self.members[one.job.user] -= one.total

    def refusal(self, one: Weighed) -> Why | None:
        """Why a waiting job cannot be paid."""
        if one.bill is None:
            return Why.NO_TIME_LIMIT
        total = one.total
        if not total:
            return None
        resources = {item.resource for item in one.bill.items}
        serving = [p.left for p in self.pots if p.resource is None or p.resource in resources]
        short = self.endless or total > sum(serving)
        if short or laying.lay(one.bill, self.pots).short:
            return Why.NOT_ENOUGH_CREDIT
        if total > self.members.get(one.job.user, total):
            return Why.MEMBER_CAP
        return None


def decide(group: Group, *, prices: PriceList, now: datetime) -> Decision:
    """All that is to be so, whatever is so already."""
    rates = Rates(prices)
    weighed = [weigh(job, rates=rates, now=now) for job in group.jobs]
    weighed.sort(key=lambda one: one.job.order)
    going = [one for one in weighed if not one.job.waits]
    waiting = [one for one in weighed if one.job.waits]
    purse = _Purse(list(group.pots), {member.user: member.left for member in group.members})
    for one in going:
        purse.draw(one)
    held: list[tuple[Weighed, Why]] = []
    paid: list[Weighed] = []
    for one in waiting:
        why = purse.refusal(one)
        if why is not None:
            held.append((one, why))
            continue
        purse.draw(one)
        paid.append(one)
    at_once = sum(pot.left for pot in group.pots)
    free = purse.free
    # Whatever such a job may cost, nothing is left beside it.
    committed = purse.committed + (max(0, at_once - purse.committed) if purse.endless else 0)
    used = at_once - sum(one.accrued for one in going)
    rate = cheapest(group.pots, prices=prices, now=now)
    counted = [*going, *paid]
    rulings = [_ruling(None, free, counted, group.sending, rate)]
    rulings += [_member(user, left, counted, group, rate) for user, left in purse.members.items()]
    return Decision(
        group=group.name,
        committed=committed,
        free=free,
        now=used,
        need=sum(one.total for one, _ in held),
        rulings=tuple(rulings),
        hold=tuple((one.job.id, why) for one, why in held),
        pay=tuple(one.job.id for one in paid),
        stop=tuple(_stops(group, going, used, now=now)),
        no_price=tuple(sorted({one.no_price for one in weighed if one.no_price})),
    )


def keeps(in_slurm: int | None, wanted: int | None, *, least: int = 0) -> bool:
    """Whether a cap that is there will do: near to what is wanted, and wide enough for what is
    paid. Each job that starts or ends moves it a little, and Slurm need not hear of each."""
    if in_slurm is None or wanted is None:
        return in_slurm == wanted
    low = max(least, wanted - max(_SLACK_MINUTES, (wanted - least) // 10))
    return min(low, wanted) <= in_slurm <= wanted + max(_SLACK_MINUTES, wanted // 10)


def _ruling(
    user: str | None,
    free: int,
    counted: Iterable[Weighed],
    sending: Sequence[Sending],
    rate: tuple[int, int] | None,
) -> Ruling:
    """Shut with nothing free, unless something that is paid for is still on its way."""
    closed = free <= 0 and not sending
    why = Why.OPEN
    if closed:
        why = Why.NOT_ENOUGH_CREDIT if user is None else Why.MEMBER_CAP
    if rate is None:
        return Ruling(user, closed, why, None)
    # What runs or may start is counted by its own minutes, so that it is never kept out by the
    # price of dearer cards; only the rest by the cheapest.
    minutes = sum(one.card_minutes for one in counted) + sum(one.card_minutes for one in sending)
    return Ruling(user, closed, why, minutes + minutes_for(free, rate), minutes)


def _member(
    user: str, left: int, counted: Iterable[Weighed], group: Group, rate: tuple[int, int] | None
) -> Ruling:
    own = [one for one in counted if one.job.user == user]
    return _ruling(user, left, own, [one for one in group.sending if one.user == user], rate)


def _stops(
    group: Group, going: Sequence[Weighed], used: int, *, now: datetime
) -> Iterable[tuple[int, int]]:
    """Jobs that get a last stretch: those without a hold first. What a hold has paid for is
    stopped only when the group owes more than all its holds keep."""
    if group.at_zero is AtZero.HOLD:
        return
    lowest = 0 if group.at_zero is AtZero.STOP else -group.overdraft
    if used >= lowest:
        return
    kept = max(0, group.kept - sum(one.under_hold for one in going))
    every = used + kept < lowest
    for one in going:
        job = one.job
        if job.ended or job.started is None or not _costs(one, every=every):
            continue
        elapsed = max(0, -(-int((now - job.started).total_seconds()) // 60))
        minutes = elapsed + group.warning_minutes
        if job.minutes is None or minutes < job.minutes:
            yield job.id, minutes


def _costs(one: Weighed, *, every: bool) -> bool:
    """Whether ending it saves the group money that nothing has kept back for it."""
    owes = one.bill is None or one.total > 0
    return owes or (every and one.under_hold > 0)


def _tighter(own: int | None, ours: int | None) -> int | None:
    return min((limit for limit in (own, ours) if limit is not None), default=None)


def usable(pots: Iterable[Pot], *, now: datetime) -> tuple[Pot, ...]:
    """What may pay for a job that starts now, a balance among them also where none was opened."""
    found = laying.usable(pots, now=now, started=now)
    if not any(pot.kind is PotKind.BALANCE for pot in found):
        found.append(Pot(0, PotKind.BALANCE, 0, now))
    return tuple(found)
