"""Spot: the site's own record of preemptions, the adviser, and what a job's spot runs saved."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo
from typing import TYPE_CHECKING

from gateway.core import spot as rules
from gateway.core import spot_record as records
from gateway.core.access import Viewer
from gateway.core.credits import Credits
from gateway.core.goodput import Use
from gateway.core.pricing import Item, Preempted, PriceList
from gateway.core.spot import Advice, Prices
from gateway.core.spot_record import ALL_TYPES, LEAST_PEOPLE, Record
from gateway.core.spot_saved import PaidRun, Saved, spot_qos, steady_qos
from gateway.core.spot_saved import saved as what_was_saved
from gateway.services.training_run import training_run
from gateway.store import prices as price_rows
from gateway.store import snapshot
from gateway.store import spot as kept
from gateway.store.queries import costs
from gateway.store.queries import spot as reads
from gateway.store.queries import training as told
from gateway.store.queries.costs import JobBill, RunCharge
from gateway.store.uow import Begin

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from gateway.store.queries.jobs import JobRow

WINDOW = timedelta(days=90)
MADE_EVERY = timedelta(hours=1)
_AGAIN = (Use.REPEATED, Use.STARTING)


@dataclass(frozen=True, slots=True)
class SiteRecord:
    """What everybody may see. `hidden` records are of too few people. `made_at` None: nobody has
    summed it up yet."""

    records: tuple[Record, ...]
    hidden: int = 0
    made_at: datetime | None = None

    def find(self, gpu_type: str, qos: str | None = None) -> Record | None:
        """Of this type; of the QoS with the most runs where none is named."""
        found = [
            one
            for one in self.records
            if one.gpu_type == gpu_type and (qos is None or one.qos == qos.casefold())
        ]
        return max(found, key=lambda one: one.runs, default=None)


@dataclass(frozen=True, slots=True)
class Asked:
    """The adviser's question, as typed. None: what the site's record says, else an assumption.
    `qos` None: the one with the most runs. `hour`: of the day at which it starts."""

    hours: float
    gpu_type: str = ""
    cards: float = 1
    interval_minutes: float | None = None
    save_minutes: float = 1.0
    restart_minutes: float = 5.0
    wait_minutes: float | None = None
    between_hours: float | None = None
    qos: str | None = None


@dataclass(frozen=True, slots=True)
class Advised:
    """`gpu_type` is that of the record behind it, empty for all types; `qos` and `normal` are
    what is compared. `requeues` are behind the wait, 0 where it was typed or is an assumption."""

    advice: Advice
    qos: str
    normal: str
    gpu_type: str
    requeues: int
    wait_is_typed: bool


def refresh(*, begin: Begin, read: Begin, now: datetime, zone: tzinfo) -> int | None:
    """The worker's: sum the record up where the last one is an hour old. None: it is not."""
    with read() as session:
        last = kept.made_at(session)
        if last is not None and last > now - MADE_EVERY:
            return None
        found = _summed(session, now=now, zone=zone)
    with begin() as session:
        kept.replace(session, found, now=now)
    return len(found)


def record(
    session: "Session",
    *,
    now: datetime,
    zone: tzinfo,
    fresh: bool = False,
    least_people: int = LEAST_PEOPLE,
) -> SiteRecord:
    """As the worker summed it up last; `fresh`: summed up now, from the runs themselves."""
    if fresh:
        return _shown(_summed(session, now=now, zone=zone), now, least_people)
    found = reads.kept(session)
    if found is not None:
        return _shown(found.records, found.made_at, least_people)
    levels = snapshot.qos(session)
    is_known = bool(levels) and not spot_qos(levels)  # there is nothing to sum up
    return SiteRecord((), made_at=now if is_known else None)


def advise(
    session: "Session | None",
    asked: Asked,
    *,
    site: SiteRecord,
    now: datetime,
    typed: Prices | None = None,
) -> Advised:
    """Expected finish and cost for spot and for normal, by `typed` prices, else those of now.
    Without a session only what was asked counts. Refused, with the field."""
    levels = snapshot.qos(session) if session else ()
    qos = (asked.qos or _usual_qos(spot_qos(levels), site)).casefold()
    normal = steady_qos(levels)
    prices = typed
    if session and prices is None:
        prices = _prices(session, asked.gpu_type, qos, normal, now)
    found = behind(site, asked.gpu_type, qos)
    wait = found.requeue_wait if found else None
    assumed = rules.ASSUMED_WAIT if wait is None else wait
    mean = rules.between(asked.between_hours, found.rate if found else None, _runs(found))
    work = rules.work(
        hours=asked.hours,
        cards=asked.cards,
        interval_minutes=60.0 if asked.interval_minutes is None else asked.interval_minutes,
        save_minutes=asked.save_minutes,
        restart_minutes=asked.restart_minutes,
        wait_minutes=assumed / 60 if asked.wait_minutes is None else asked.wait_minutes,
    )
    if asked.interval_minutes is None:
        best = rules.best_interval(work.save, mean.seconds, work.seconds)
        work = replace(work, interval=best)
    return Advised(
        advice=rules.advise(work, mean, prices),
        qos=qos,
        normal=normal,
        gpu_type=found.gpu_type if found else ALL_TYPES,
        requeues=found.requeues if found and wait is not None and asked.wait_minutes is None else 0,
        wait_is_typed=asked.wait_minutes is not None,
    )


def behind(site: SiteRecord, gpu_type: str, qos: str | None) -> Record | None:
    """The record of the type where it has enough preemptions, else that of all types, if it has."""
    for name in (gpu_type, ALL_TYPES):
        found = site.find(name, qos or None)
        if found and found.rate and found.rate.is_enough:
            return found
    return None


def saved(session: "Session", job: "JobRow", *, viewer: Viewer, now: datetime) -> Saved | None:
    """Of a job that is over and ran in a QoS that may be preempted. None for any other, and while
    a run is not charged or waits for a person."""
    levels = snapshot.qos(session)
    name = (job.qos or "").casefold()
    if job.active or name not in {one.casefold() for one in spot_qos(levels)}:
        return None
    bill, listed = costs.of_job(session, job.id), price_rows.load(session)
    if not bill.charges or any(one.state == "review" for one in bill.charges):
        return None
    again = _made_again(session, job, bill, viewer=viewer, now=now)
    runs = [
        PaidRun(
            start=one.start,
            end=one.end or one.start,
            preempted=one.run_state == "PREEMPTED",
            items=_at_list(one, listed),
            charged=Credits(one.amount - _given_back(bill, one.id)),
            again=again.get(one.start),
        )
        for one in bill.charges
    ]
    return what_was_saved(runs, qos=name, normal=steady_qos(levels), prices=listed)


def _summed(session: "Session", *, now: datetime, zone: tzinfo) -> tuple[Record, ...]:
    """Of each QoS that may be preempted: each GPU type, and all of them together."""
    since = now - WINDOW
    levels = snapshot.qos(session)
    names = spot_qos(levels) if levels else reads.preempted_qos(session, since=since)
    shift = records.shift_of(zone, now)
    found = reads.sums(session, names, since=since, shift=shift)
    wholes = {
        (name, ALL_TYPES): records.together(part for (qos, _), part in found.items() if qos == name)
        for name in sorted(name.casefold() for name in names)
    }
    return tuple(
        records.record(qos, kind, sums, since=since, until=now, zone=zone)
        for (qos, kind), sums in sorted((wholes | found).items())
    )


def _shown(found: Sequence[Record], made_at: datetime | None, least: int) -> SiteRecord:
    """Of one hidden type alone the sum would tell: then the sum is hidden too."""
    kinds = [one for one in found if one.gpu_type != ALL_TYPES]
    shown = [one for one in (records.hide(one, least) for one in kinds) if one]
    for whole in (one for one in found if one.gpu_type == ALL_TYPES):
        own = [one for one in kinds if one.qos == whole.qos]
        lost = len(own) - sum(one.qos == whole.qos for one in shown)
        kept_whole = records.hide(whole, least) if lost != 1 or len(own) == 1 else None
        shown += [kept_whole] if kept_whole else []
    hidden = len(kinds) - sum(one.gpu_type != ALL_TYPES for one in shown)
    return SiteRecord(
        tuple(sorted(shown, key=lambda one: (one.qos, one.gpu_type))), hidden, made_at
    )


def _usual_qos(names: frozenset[str], site: SiteRecord) -> str:
    """The one with the most runs; without any record, the first by name."""
    whole = site.find(ALL_TYPES)
    return whole.qos if whole else min(names, default="")


def _runs(found: Record | None) -> int:
    return found.runs if found else 0


def _prices(
    session: "Session", gpu_type: str, qos: str, normal: str, now: datetime
) -> Prices | None:
    """None where nobody has set a price for such cards."""
    listed = price_rows.load(session)
    per_hour = listed.price(gpu_type, now) if gpu_type else None
    if per_hour is None or not qos:
        return None
    return Prices(
        per_hour=per_hour,
        spot_factor=listed.factor_millionths(qos, now),
        normal_factor=listed.factor_millionths(normal, now),
        gives_back=listed.preempted(qos, now) is Preempted.FREE,
    )


def _at_list(charge: RunCharge, listed: PriceList) -> tuple[Item, ...] | None:
    """None where a package paid at its own price."""
    found = []
    for line in charge.items:
        per_hour = listed.price(line["resource"], charge.start)
        if per_hour is None or line["per_hour"] != per_hour:
            return None
        found.append(
            Item(line["resource"], 1, line["unit_seconds"], per_hour, line["factor_millionths"])
        )
    return tuple(found)


def _given_back(bill: JobBill, charge_id: int) -> int:
    return sum(
        one.amount for one in bill.refunds if one.charge_id == charge_id and one.undone_at is None
    )


def _made_again(
    session: "Session", job: "JobRow", bill: JobBill, *, viewer: Viewer, now: datetime
) -> dict[datetime, float]:
    """By the start of each run: the share of its card-seconds in which steps were made again, or
    the training started again. Only of runs that told, and only where one was preempted."""
    if all(one.run_state != "PREEMPTED" for one in bill.charges):
        return {}
    if told.brief(session, job.id) is None:
        return {}
    found = {}
    for stretch in training_run(session, job.id, viewer=viewer, now=now).stretches:
        parts, whole = stretch.goodput.parts, stretch.goodput.total
        if stretch.job.id == job.id and whole and parts[Use.NOT_MEASURED] < whole:
            found[stretch.start] = sum(parts[use] for use in _AGAIN) / whole
    return found
