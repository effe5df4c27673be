"""Waits over time, and by the hours of the week."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, timedelta
from zoneinfo import ZoneInfo

from gateway.core.wait_figures import Question
from gateway.core.wait_shapes import HeatCell, Step, TimePoint
from gateway.core.wait_sight import Shown
from gateway.services.seen_waits import SeenWaits
from gateway.web import wait_charts, wait_tables, wait_words
from gateway.web.csvtext import csv_row
from gateway.web.show import duration
from gateway.web.texts import Lazy, gettext
from gateway.web.texts import lazy_gettext as _l
from gateway.web.views.waitrows import plain_heads
from gateway.web.views.waits_frame import Frame
from gateway.web.wait_charts import Lines, Moment
from gateway.web.wait_tables import TableRow, WaitTable, exact

_STEPS: dict[Step, tuple[Lazy, float, str]] = {
    Step.HOUR: (_l("by hour"), 3600, "%Y-%m-%d %H:%M"),
    Step.DAY: (_l("by day"), 86400, "%Y-%m-%d"),
    Step.WEEK: (_l("by week"), 7 * 86400, "%Y-%m-%d"),
    Step.MONTH: (_l("by month"), 31 * 86400, "%Y-%m"),
}
_DAYS = (_l("Mon"), _l("Tue"), _l("Wed"), _l("Thu"), _l("Fri"), _l("Sat"), _l("Sun"))
_LEVELS = 5
_MOST_MOMENTS = 2000


@dataclass(frozen=True, slots=True)
class SeriesView:
    """`steps`: word, address, whether it is this one."""

    steps: tuple[tuple[str, str, bool], ...]
    chart: Lines | None
    table: WaitTable
    csv: str
    hidden: str
    cut: str


def step(text: str, question: Question) -> Step:
    """The one asked for, or one that fits the period."""
    if text in list(Step):
        return Step(text)
    if question.since is None:
        return Step.MONTH
    length = (question.until or question.now) - question.since
    if length <= timedelta(days=3):
        return Step.HOUR
    if length <= timedelta(days=93):
        return Step.DAY
    return Step.WEEK if length <= timedelta(days=800) else Step.MONTH


def newest(past: SeenWaits, question: Question, by: Step) -> Question:
    """The question about as many steps as are drawn: the hours of ten years would take seconds."""
    most = timedelta(seconds=_STEPS[by][1] * _MOST_MOMENTS)
    until = question.until or question.now
    if by in {Step.WEEK, Step.MONTH} or (question.since and until - question.since <= most):
        return question
    months = past.over_time(question, Step.MONTH).rows
    if months:  # of an old set the last ones are long ago
        until = min(until, months[-1].since + timedelta(days=32))
    begin = until - most
    return replace(question, since=max(begin, question.since or begin))


def series(frame: Frame, found: Shown[TimePoint], by: Step, *, cut: bool) -> SeriesView:
    """`cut`: there may be more than `newest` left."""
    _, wide, _ = _STEPS[by]
    points = found.rows
    zone = ZoneInfo(frame.zone)
    moments = [_moment(point, by, zone) for point in points]
    label = gettext("Wait of the started, by when they were submitted (%(zone)s)", zone=frame.zone)
    kinds = (("wait", gettext("median")), ("wait-more", "p90"), ("wait-most", "p99"))
    return SeriesView(
        steps=tuple(
            (str(word), frame.asked.url("waits.over_time", step=one.value), one is by)
            for one, (word, _, _) in _STEPS.items()
        ),
        chart=wait_charts.over_time(moments, kinds, step=wide, label=label),
        table=_series_table(label, points, moments),
        csv=frame.asked.url("waits.over_time_csv", step=by.value),
        hidden=wait_words.hidden_words(found.hidden, frame.least),
        cut=gettext(
            "At most %(n)s steps are shown, the newest; the CSV has all.", n=f"{_MOST_MOMENTS:,}"
        )
        if cut
        else "",
    )


def series_csv(found: Shown[TimePoint]) -> Iterator[str]:
    """Moments are UTC."""
    names = ("wait_median_s", "wait_p90_s", "wait_p99_s", "run_median_s")
    yield csv_row(("since", "jobs", "started", "never_started", "waiting", *names))
    for one in found.rows:
        counts = (one.jobs, one.started, one.never_started, one.waiting)
        at = one.since.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        yield csv_row((at, *counts, *(_number(getattr(one, name)) for name in names)))


@dataclass(frozen=True, slots=True)
class Cell:
    """`level` 0 to 5 is its colour."""

    hour: int
    level: int
    text: str
    title: str


@dataclass(frozen=True, slots=True)
class Day:
    day: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Heat:
    label: str
    rows: tuple[Day, ...]


@dataclass(frozen=True, slots=True)
class WeekView:
    heat: Heat | None
    scale: str
    table: WaitTable
    csv: str
    hidden: str


def week(frame: Frame, found: Shown[HeatCell]) -> WeekView:
    cells = {cell.hour: cell for cell in found.rows}
    known = [cell.median_s for cell in cells.values() if cell.median_s is not None]
    label = gettext("Median wait by hour of the week of the submit (%(zone)s)", zone=frame.zone)
    scale = _Scale.of(known)
    days = tuple(
        Day(str(word), tuple(_cell(cells.get(day * 24 + h), h, scale) for h in range(24)))
        for day, word in enumerate(_DAYS)
    )
    return WeekView(
        heat=Heat(label, days) if known else None,
        scale=gettext(
            "The strongest colour is %(time)s, on a log scale.", time=duration(max(known))
        )
        if known
        else "",
        table=_week_table(label, sorted(cells.values(), key=lambda cell: cell.hour)),
        csv=frame.asked.url("waits.week_csv"),
        hidden=wait_words.hidden_words(found.hidden, frame.least),
    )


def week_csv(found: Shown[HeatCell]) -> Iterator[str]:
    """Day 1 is Monday; hours are those of the site's zone."""
    yield csv_row(("day", "hour", "jobs", "median_s", "p90_s"))
    for cell in sorted(found.rows, key=lambda cell: cell.hour):
        figures = (_number(cell.median_s), _number(cell.p90_s))
        yield csv_row((cell.hour // 24 + 1, cell.hour % 24, cell.jobs, *figures))


def _moment(point: TimePoint, by: Step, zone: ZoneInfo) -> Moment:
    _, _, pattern = _STEPS[by]
    values = (point.wait_median_s, point.wait_p90_s, point.wait_p99_s)
    word = point.since.astimezone(zone).strftime(pattern)
    return Moment(point.since, word, values, point.jobs)


def _series_table(
    caption: str, points: Sequence[TimePoint], moments: Sequence[Moment]
) -> WaitTable:
    heads = plain_heads(
        *(gettext("Submitted"), gettext("Jobs"), gettext("median"), "p90", "p99"),
        *(gettext("Run time, median"), gettext("never started"), gettext("waiting")),
    )
    rows = tuple(
        TableRow(
            moment.word,
            (
                wait_tables.number(one.jobs),
                *map(wait_tables.seconds, (*moment.values, one.run_median_s)),
                *map(wait_tables.number, (one.never_started, one.waiting)),
            ),
        )
        for one, moment in zip(reversed(points), reversed(moments), strict=True)
    )
    return WaitTable(caption, heads, rows)


@dataclass(frozen=True, slots=True)
class _Scale:
    """Levels are even on a log axis, as waits are: an hour against a day, not against a minute."""

    low: float
    high: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> "_Scale":
        """From the shortest to the longest; where all are much alike, no colour says otherwise."""
        logs = [wait_charts.log_seconds(one) for one in seconds]
        high = max(logs, default=0.0)
        return cls(min(min(logs, default=0.0), high - 1), high)

    def level(self, seconds: float) -> int:
        share = (wait_charts.log_seconds(seconds) - self.low) / (self.high - self.low)
        return 1 + min(_LEVELS - 1, int(share * _LEVELS))


def _cell(cell: HeatCell | None, hour: int, scale: _Scale) -> Cell:
    if cell is None:
        return Cell(hour, 0, "·", gettext("hidden: too few people"))
    if cell.median_s is None:
        return Cell(hour, 0, "", gettext("no job"))
    jobs = wait_words.jobs_words(cell.jobs)
    title = gettext(
        "%(hour)s:00: median %(median)s, p90 %(p90)s, %(jobs)s",
        hour=f"{hour:02d}",
        median=duration(cell.median_s),
        p90=duration(cell.p90_s),
        jobs=jobs,
    )
    return Cell(hour, scale.level(cell.median_s), _tiny(cell.median_s), title)


def _tiny(seconds: float) -> str:
    """The largest unit alone: there is room for three characters."""
    for one, word in ((86400, _l("%(n)sd")), (3600, _l("%(n)sh")), (60, _l("%(n)sm"))):
        if seconds >= one:
            return word % {"n": int(seconds / one)}
    return gettext("%(n)ss", n=int(seconds))


def _week_table(caption: str, cells: Sequence[HeatCell]) -> WaitTable:
    heads = plain_heads(gettext("Hour"), gettext("Jobs"), gettext("median"), "p90")
    rows = tuple(
        TableRow(
            f"{_DAYS[cell.hour // 24]} {cell.hour % 24:02d}:00",
            (
                wait_tables.number(cell.jobs),
                *map(wait_tables.seconds, (cell.median_s, cell.p90_s)),
            ),
        )
        for cell in cells
        if cell.jobs
    )
    return WaitTable(caption, heads, rows)


def _number(value: float | None) -> str:
    return "" if value is None else exact(value)
