"""The preemption record as the spot page shows it: a heat map, curves, tables, CSV."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from gateway.core.spot_record import (
    ALL_TYPES,
    HOURS,
    LEAST_EVENTS,
    LEAST_PEOPLE,
    Cell,
    Rate,
    Record,
    Step,
    minutes_to,
    survival,
)
from gateway.services.spot import SiteRecord
from gateway.web.charts import thinned
from gateway.web.csvtext import csv_row
from gateway.web.planner_words import hours_figure
from gateway.web.show import duration
from gateway.web.texts import gettext, ngettext

_PER = 100  # hours on nodes, for which preemptions are told: small numbers that can be read
_LEVELS = 5
_MOST_ROWS = 25
_QUANTILES = (0.25, 0.5, 0.75, 0.9)


@dataclass(frozen=True, slots=True)
class HeatCell:
    """`level` 0 to 5 is its colour, `text` its number: preemptions in 100 hours on nodes. `few`:
    hardly a number."""

    hour: int
    level: int
    text: str
    few: bool
    title: str


@dataclass(frozen=True, slots=True)
class HourRow:
    hour: str
    exposure: str
    cards: str
    events: str
    per: str
    band: str


@dataclass(frozen=True, slots=True)
class CurveRow:
    after: str
    left: str
    at_risk: str


@dataclass(frozen=True, slots=True)
class TypeView:
    """One QoS and type: a row of the heat map, a curve, and a table for each. `curve` are points
    of 100 by 100."""

    key: str
    name: str
    qos: str
    runs: int
    people: int
    events: int
    hours: str
    often: str
    band: str
    median: str
    quantiles: tuple[tuple[str, str], ...]
    cells: tuple[HeatCell, ...]
    hour_rows: tuple[HourRow, ...]
    curve: str
    curve_end: str
    curve_label: str
    curve_rows: tuple[CurveRow, ...]


@dataclass(frozen=True, slots=True)
class RecordView:
    types: tuple[TypeView, ...]
    hidden: int
    made_at: datetime | None
    since: datetime | None
    zone: str
    least_people: int = LEAST_PEOPLE
    least_events: int = LEAST_EVENTS


def record_view(site: SiteRecord, zone: str) -> RecordView:
    types = [one for one in site.records if one.gpu_type != ALL_TYPES]
    most = max((_per(cell) for one in types for cell in one.hours), default=0.0)
    several = len({one.qos for one in types}) > 1
    return RecordView(
        types=tuple(_type(one, most, several=several) for one in types),
        hidden=site.hidden,
        made_at=site.made_at,
        since=types[0].since if types else None,
        zone=zone,
    )


def hours_csv(site: SiteRecord) -> Iterator[str]:
    """A hidden hour has empty numbers."""
    yield csv_row(
        (
            *("qos", "gpu_type", "hour", "job_hours", "card_hours", "preemptions"),
            *("per_job_hour", "low_95", "high_95"),
        )
    )
    for one in site.records:
        for hour in range(HOURS):
            cell = one.hours[hour]
            yield csv_row((one.qos, one.gpu_type, hour, *_csv_sums(cell)))


def survival_csv(site: SiteRecord) -> Iterator[str]:
    yield csv_row(("qos", "gpu_type", "hours_on_nodes", "share_not_preempted", "runs_at_risk"))
    for one in site.records:
        for step in survival(one.lengths):
            row = (f"{step.minutes / 60:.3f}", f"{step.share:.6f}", step.at_risk)
            yield csv_row((one.qos, one.gpu_type, *row))


def _csv_sums(cell: Cell | None) -> tuple[object, ...]:
    if cell is None:
        return ("",) * 6
    rate = cell.rate
    bounds = (f"{rate.per_hour:.6f}", f"{rate.low:.6f}", f"{rate.high:.6f}") if rate else ("",) * 3
    return (f"{cell.seconds / 3600:.3f}", f"{cell.card_seconds / 3600:.3f}", cell.events, *bounds)


def _type(one: Record, most: float, *, several: bool) -> TypeView:
    steps, rate = survival(one.lengths), one.rate
    every = rate.between_hours if rate else None
    median = minutes_to(steps, 0.5)
    end = steps[-1].minutes
    name = f"{one.gpu_type} ({one.qos})" if several else one.gpu_type
    return TypeView(
        key=f"{one.qos}-{one.gpu_type}",
        name=name,
        qos=one.qos,
        runs=one.runs,
        people=one.whole.people,
        events=one.whole.events,
        hours=f"{one.whole.seconds / 3600:,.0f}",
        often=gettext("about every %(hours)s h", hours=hours_figure(every)) if every else "",
        band=gettext(
            "%(low)s to %(high)s h",
            low=hours_figure(1 / rate.high),
            high=hours_figure(1 / rate.low),
        )
        if rate and every
        else "",
        median=duration(median * 60) if median is not None else "",
        quantiles=tuple(_quantile(steps, share) for share in _QUANTILES),
        cells=tuple(_heat(one, hour, most) for hour in range(HOURS)),
        hour_rows=tuple(_hour(one.hours[hour], hour) for hour in range(HOURS)),
        curve=_curve(steps, end),
        curve_end=duration(end * 60),
        curve_label=_curve_label(name, steps, end),
        curve_rows=tuple(_curve_row(step) for step in thinned(steps, _MOST_ROWS)),
    )


def _band(rate: Rate) -> str:
    low, high = hours_figure(1 / rate.high), hours_figure(1 / rate.low)
    return gettext("%(low)s to %(high)s h", low=low, high=high)


def _quantile(steps: tuple[Step, ...], share: float) -> tuple[str, str]:
    """A share of runs, and after how long they were preempted; empty: it never came so far."""
    at = minutes_to(steps, share)
    return f"{share * 100:.0f} %", duration(at * 60) if at is not None else ""


def _per(cell: Cell | None) -> float:
    rate = cell.rate if cell else None
    return rate.per_hour * _PER if rate and rate.is_enough else 0.0


def _heat(one: Record, hour: int, most: float) -> HeatCell:
    cell = one.hours[hour]
    rate = cell.rate if cell else None
    clock = f"{hour:02d}:00"
    if cell is None:
        return HeatCell(hour, 0, "·", True, gettext("%(at)s: hidden, too few people", at=clock))
    if rate is None:
        return HeatCell(hour, 0, "", True, gettext("%(at)s: nothing ran", at=clock))
    title = ngettext(
        "%(at)s: %(num)d preemption in %(hours)s job hours",
        "%(at)s: %(num)d preemptions in %(hours)s job hours",
        cell.events,
        at=clock,
        hours=hours_figure(rate.hours),
    )
    per = rate.per_hour * _PER
    level = min(_LEVELS, 1 + int(per / most * (_LEVELS - 1) + 0.5)) if most and per else 0
    if not rate.is_enough:
        return HeatCell(hour, 0, f"{per:.0f}", True, title)
    return HeatCell(hour, level, f"{per:.0f}" if per >= 10 else f"{per:.1f}", False, title)


def _hour(cell: Cell | None, hour: int) -> HourRow:
    clock = f"{hour:02d}:00–{(hour + 1) % HOURS:02d}:00"
    if cell is None:
        return HourRow(clock, gettext("hidden"), "", "", "", "")
    rate = cell.rate
    exposure, cards = (f"{n / 3600:,.1f}" for n in (cell.seconds, cell.card_seconds))
    if rate is None:
        return HourRow(clock, exposure, cards, "0", "", "")
    band = f"{rate.low * _PER:.1f}–{rate.high * _PER:.1f}"
    per = f"{rate.per_hour * _PER:.1f}" if rate.is_enough else gettext("too few")
    return HourRow(clock, exposure, cards, f"{cell.events:,}", per, band)


def _curve(steps: tuple[Step, ...], end: int) -> str:
    """A staircase: the share stays until the next preemption, up to the longest run."""
    points, share = ["0,0"], 1.0
    for step in steps[1:]:
        across = step.minutes / max(end, 1) * 100
        points += [f"{across:.2f},{(1 - share) * 100:.2f}"]
        share = step.share
        points += [f"{across:.2f},{(1 - share) * 100:.2f}"]
    return " ".join([*points, f"100,{(1 - share) * 100:.2f}"])


def _curve_label(name: str, steps: tuple[Step, ...], end: int) -> str:
    return gettext(
        "%(type)s: share of runs not preempted, from 100 %% at the start to %(left)s %% after "
        "%(time)s; the table beneath has the numbers.",
        type=name,
        left=f"{steps[-1].share * 100:.0f}",
        time=duration(end * 60),
    )


def _curve_row(step: Step) -> CurveRow:
    after = duration(step.minutes * 60) if step.minutes else gettext("start")
    return CurveRow(after, f"{step.share * 100:.1f} %", f"{step.at_risk:,}")
