"""Statistics of waits against the definitions written down naively, over rows made at random."""

import math
import random
from collections import defaultdict
from datetime import UTC, datetime, time, timedelta
from fractions import Fraction
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from zoneinfo import ZoneInfo

import pytest

from gateway.core.past_runs import COLUMNS
from gateway.core.wait_causes import Cause
from gateway.core.wait_figures import UNKNOWN, Dimension, Question, Wait
from gateway.core.wait_shapes import LOG_BOUNDS, Step
from gateway.history import blocks
from gateway.history.stats import causes, part_files, series, waits
from gateway.history.stats.time_keys import TIMES

ZONES = ("Europe/Berlin", "Asia/Shanghai", "America/St_Johns")
# Both nights on which the clock of Berlin was changed lie in it.
FIRST = int(datetime(2025, 3, 20, tzinfo=UTC).timestamp())
LAST = int(datetime(2025, 11, 5, tzinfo=UTC).timestamp())
NIGHTS = [int(datetime(2025, *at, tzinfo=UTC).timestamp()) for at in ((3, 30), (10, 26))]
NOW = LAST + 9 * 86_400


def made(chance, count):
    return [_row(chance) for _ in range(count)]


def _row(chance):
    near = chance.choice(NIGHTS) + chance.randrange(-7200, 10_800)
    submit = near if chance.random() < 0.3 else chance.randrange(FIRST, LAST)
    eligible = submit + chance.choice((0, 0, 1, chance.randrange(1, 200_000)))
    wait = chance.choice((0, 0, 1, 60, chance.randrange(300), chance.randrange(900_000)))
    kind = chance.choices(("ended", "running", "left", "waiting"), (70, 5, 15, 10))[0]
    start = eligible + wait if chance.random() < 0.97 else eligible - 5
    elapsed = chance.choice((0, 1, 3600, chance.randrange(200_000)))
    row = dict.fromkeys(COLUMNS)
    row |= {
        "submit_time": submit,
        "eligible_time": eligible if chance.random() < 0.9 else None,
        "start_time": start if kind in {"ended", "running"} else None,
        "end_time": {"ended": start + elapsed + 30, "left": start}.get(kind),
        "elapsed_seconds": elapsed if kind == "ended" and chance.random() < 0.9 else None,
        "gpus": chance.choice((None, 0, 0, 1, 2, 4, 8, 9, 16)),
        "cpus": chance.choice((None, 1, 64)),
        "limit_minutes": chance.choice((None, 60, 61, 240, 720, 1440, 4320, 4321)),
        "restarts": chance.choice((None, 0, 0, 0, 0, 1)),
        "user": chance.choice((None, "ann", "bob", "cy", "dee")),
        "group": chance.choice(("nlp", "vision")),
        "partition": chance.choice((None, "a100", "v100")),
        "state": kind.upper(),
        "cause_array_throttle": chance.choice((0, 0, 0, 7)),
        "cause_priority": chance.choice((None, 0, 50)),
    }
    if kind == "waiting":
        row |= {"seen_at": LAST + 86_400, "cause_now": chance.choice((None, "priority"))}
    if chance.random() < 0.2:
        row |= {"source": "trace", "cause_now": None}
        if kind == "running" and chance.random() < 0.5:
            row["elapsed_seconds"] = elapsed
    return row


@pytest.fixture(params=range(3))
def past(request):
    chance = random.Random(request.param)
    rows = made(chance, (5, 60, 500)[request.param])
    ordered = [tuple(row[name] for name in COLUMNS) for row in rows]
    with TemporaryDirectory() as folder:
        half = len(ordered) // 2
        files = [
            Path(folder) / blocks.write(Path(folder), block, part)
            for block, part in enumerate((ordered[:half], ordered[half:]))
        ]
        yield rows, part_files.Parts().of(files, Path(folder) / "columns")


def questions():
    now = datetime.fromtimestamp(NOW, UTC)
    since, until = (datetime(2025, month, 2, tzinfo=UTC) for month in (5, 10))
    for wait in Wait:
        yield Question(now=now, wait=wait, zone=ZONES[0])
        yield Question(now=now, wait=wait, since=since, until=until, zone=ZONES[1], own_user="ann")
        yield Question(now=now, wait=wait, only={Dimension.PARTITION: ("a100", "")}, least_gpus=2)
        yield Question(now=now, wait=wait, own_groups=("nlp",), zone=ZONES[2])


# The definitions, one row at a time.


def chosen(rows, question):
    values = question.only.get(Dimension.PARTITION)
    return [
        row
        for row in rows
        if inside(row["submit_time"], question)
        and (values is None or (row["partition"] or "") in values)
        and (not question.least_gpus or (row["gpus"] or 0) >= question.least_gpus)
    ]


def inside(at, question):
    return (question.since is None or at >= question.since.timestamp()) and (
        question.until is None or at < question.until.timestamp()
    )


def counted(row, question):
    return question.wait is Wait.SUBMIT or not row["restarts"]


def held(row, question):
    return question.wait is Wait.ELIGIBLE and row["cause_array_throttle"] > 0


def waited(row, question):
    """Until it started, ended without a start, or now, or the end of its set; None: it was never
    eligible."""
    now = row["seen_at"] if row["source"] else NOW
    until = next((row[n] for n in ("start_time", "end_time") if row[n] is not None), now)
    if question.wait is Wait.SUBMIT:
        return max(until - row["submit_time"], 0)
    eligible = row["eligible_time"]
    if row["start_time"] is not None:
        return max(until - (row["submit_time"] if eligible is None else eligible), 0)
    return until - eligible if eligible is not None and eligible <= until else None


def run_time(row):
    if row["elapsed_seconds"] is not None:
        return row["elapsed_seconds"]
    return row["end_time"] - row["start_time"]


def has_ended(row):
    return row["start_time"] is not None and row["end_time"] is not None


def cont(values, percent):
    place = Fraction(percent * (len(values) - 1), 100)
    low = math.floor(place)
    high = min(low + 1, len(values) - 1)
    return float(values[low] + (values[high] - values[low]) * (place - low))


def check_spread(spread, values):
    values = sorted(values)
    assert spread.n == len(values)
    assert spread.sum_s == sum(values)
    if not values:
        assert spread.median_s is spread.max_s is spread.share_zero is None
        return
    assert spread.mean_s == pytest.approx(sum(values) / len(values))
    for percent, name in ((50, "median_s"), (90, "p90_s"), (95, "p95_s"), (99, "p99_s")):
        assert getattr(spread, name) == pytest.approx(cont(values, percent))
    for percent, name in ((90, "p90_disc_s"), (95, "p95_disc_s"), (99, "p99_disc_s")):
        assert getattr(spread, name) == values[math.ceil(percent * len(values) / 100) - 1]
    assert spread.max_s == values[-1]
    assert spread.share_zero == pytest.approx(values.count(0) / len(values))


def kaplan_meier(started, left):
    """(seconds, share that still waits) after each moment at which one started."""
    share, points = Fraction(1), []
    for at in sorted(set(started)):
        risk = sum(t >= at for t in started) + sum(t >= at for t in left)
        share *= 1 - Fraction(started.count(at), risk)
        points.append((at, share))
    return points


def parts_of(rows, question):
    service = [r for r in rows if counted(r, question) and not held(r, question)]
    started = [r for r in service if r["start_time"] is not None]
    gone = [r for r in service if r["start_time"] is None]
    left = [w for w in (waited(r, question) for r in gone) if w is not None]
    return started, gone, left


def check(figures, rows, question):
    started, gone, left = parts_of(rows, question)
    jobs = [row for row in rows if counted(row, question)]
    assert figures.jobs == len(jobs)
    assert figures.started == sum(row["start_time"] is not None for row in jobs)
    assert figures.never_started == sum(row["state"] == "LEFT" for row in jobs)
    assert figures.waiting == sum(row["state"] == "WAITING" for row in jobs)
    assert figures.throttled == sum(held(row, question) for row in rows)
    assert figures.gpu_jobs == sum((row["gpus"] or 0) > 0 for row in jobs)
    times = [waited(row, question) for row in started]
    check_spread(figures.wait, times)
    check_spread(figures.run, [run_time(row) for row in rows if has_ended(row)])
    deferred = [
        max(min(r["eligible_time"] or 0, r["start_time"]) - r["submit_time"], 0) for r in started
    ]
    check_spread(figures.deferral, deferred)
    again = [r for r in rows if r["restarts"] and r["start_time"] and not held(r, question)]
    check_spread(figures.requeue_wait, [waited(row, question) for row in again])
    gave_up = [waited(row, question) for row in gone if row["state"] == "LEFT"]
    check_spread(figures.gave_up, [one for one in gave_up if one is not None])
    curve = kaplan_meier(times, left)
    for percent, name in ((50, "median_s"), (90, "p90_s"), (99, "p99_s")):
        reached = [at for at, share in curve if share <= 1 - Fraction(percent, 100)]
        assert getattr(figures.censored, name) == (reached[0] if reached else None)
    both = [(waited(r, question), run_time(r)) for r in started if has_ended(r)]
    total = sum(run for _, run in both)
    expected = sum(wait for wait, _ in both) / total if total else None
    assert figures.ratio_of_sums == pytest.approx(expected)
    ratios = [wait / run for wait, run in both if run > 0]
    assert figures.ratio_mean == pytest.approx(sum(ratios) / len(ratios) if ratios else None)
    assert figures.ratio_median == pytest.approx(median(ratios) if ratios else None)


def hours(rows, question, name):
    """Of all rows that filters let through: what lies in the period."""
    total = 0
    for row in rows:
        if row["start_time"] is None:
            continue
        end = goes_on_until(row) if row["end_time"] is None else row["end_time"]
        since = question.since.timestamp() if question.since else 0
        until = question.until.timestamp() if question.until else 2**40
        run = end - row["start_time"] if row["end_time"] is None else run_time(row)
        part = max(min(end, until) - max(row["start_time"], since), 0)
        total += (row[name] or 0) * run * part / max(end - row["start_time"], 1)
    return total / 3600


def goes_on_until(row):
    """Of a run without an end: until now and no longer than its limit, or than a set tells."""
    if row["source"]:
        return row["start_time"] + (row["elapsed_seconds"] or 0)
    limit = row["limit_minutes"]
    return NOW if limit is None else min(NOW, row["start_time"] + 60 * limit)


def people(rows, question):
    """People, and others than the asker."""
    others = [
        row
        for row in rows
        if row["group"] not in question.own_groups
        and (row["user"] is None or row["user"] != question.own_user)
    ]
    named = {row["user"] for row in others} - {None}
    nameless = sum(row["user"] is None for row in others)
    return len({row["user"] for row in rows} - {None}), len(named) + nameless


def whole_past(question):
    return question.since is None and question.until is None


@pytest.mark.parametrize("question", list(questions()))
def test_figures(past, question):
    rows, parts = past
    figures = waits.figures(parts, question)
    check(figures, chosen(rows, question), question)
    everywhen = Question(now=question.now, only=question.only, least_gpus=question.least_gpus)
    used = chosen(rows, everywhen)
    assert figures.gpu_hours == pytest.approx(hours(used, question, "gpus"))
    assert figures.cpu_hours == pytest.approx(hours(used, question, "cpus"))
    if whole_past(question):
        assert (figures.people, figures.others) == people(chosen(rows, question), question)
    assert waits.others(parts, question) == figures.others


def key_of(row, dimension, zone):
    def local(name):
        at = row[name]
        return None if at is None else datetime.fromtimestamp(at, ZoneInfo(zone))

    match dimension:
        case Dimension.GPU_CLASS:
            gpus = row["gpus"]
            names = {None: UNKNOWN, 0: "0", 1: "1", 2: "2-4", 4: "2-4", 8: "5-8"}
            return names.get(gpus, ">8")
        case Dimension.GPUS:
            return UNKNOWN if row["gpus"] is None else str(row["gpus"])
        case Dimension.LIMIT_CLASS:
            names = {None: UNKNOWN, 60: "≤1h", 61: "≤4h", 240: "≤4h", 720: "≤12h"}
            names |= {1440: "≤24h", 4320: "≤3d", 4321: ">3d"}
            return names[row["limit_minutes"]]
        case Dimension.HOUR_OF_WEEK:
            at = local("submit_time")
            return str(at.weekday() * 24 + at.hour)
        case Dimension.SUBMIT_DAY:
            return str(local("submit_time").date())
        case Dimension.START_DAY:
            return str(local("start_time").date()) if row["start_time"] is not None else None
        case Dimension.END_DAY:
            return str(local("end_time").date()) if has_ended(row) else None
        case Dimension.SUBMIT_MONTH:
            return f"{local('submit_time'):%Y-%m}"
    return row[dimension.value] or UNKNOWN


@pytest.mark.parametrize(
    ("dimension", "zone"),
    [(one, zone) for one in Dimension for zone in (ZONES if one in TIMES else ZONES[:1])],
)
def test_by(past, dimension, zone):
    rows, parts = past
    question = Question(now=datetime.fromtimestamp(NOW, UTC), zone=zone)
    grouped = defaultdict(list)
    for row in rows:
        grouped[key_of(row, dimension, zone)].append(row)
    grouped.pop(None, None)
    found = dict(waits.by(parts, question, dimension))
    empty = set(grouped) - set(found)
    assert set(found) <= set(grouped)
    left = [row for key in empty for row in grouped[key]]
    assert not any(counted(row, question) or has_ended(row) for row in left)
    assert hours(left, question, "gpus") == 0
    for key, figures in found.items():
        check(figures, grouped[key], question)
        assert (figures.people, figures.others) == people(grouped[key], question)
        assert figures.gpu_hours == pytest.approx(hours(grouped[key], question, "gpus"))


@pytest.mark.parametrize("step", Step)
@pytest.mark.parametrize("zone", ZONES)
def test_over_time(past, step, zone):
    rows, parts = past
    question = Question(now=datetime.fromtimestamp(NOW, UTC), zone=zone)
    points = series.over_time(parts, question, step)
    assert sum(point.jobs for point in points) == sum(counted(row, question) for row in rows)
    grouped = defaultdict(list)
    for row in rows:
        grouped[begin_of(row, step, ZoneInfo(zone))].append(row)
    for point in points:
        there = grouped[point.since]
        assert point.jobs == sum(counted(row, question) for row in there)
        started, _, _ = parts_of(there, question)
        times = sorted(waited(row, question) for row in started)
        if times:
            assert point.wait_median_s == pytest.approx(cont(times, 50))
            assert point.wait_p99_s == pytest.approx(cont(times, 99))
        runs = [run_time(row) for row in there if has_ended(row)]
        assert point.run_median_s == (pytest.approx(median(runs)) if runs else None)


def begin_of(row, step, zone):
    at = datetime.fromtimestamp(row["submit_time"], zone)
    if step is Step.HOUR:
        return datetime.fromtimestamp(row["submit_time"] // 3600 * 3600, UTC)
    day = at.date()
    if step is Step.WEEK:
        day -= timedelta(days=day.weekday())
    if step is Step.MONTH:
        day = day.replace(day=1)
    return datetime.combine(day, time.min, zone).astimezone(UTC)


def test_heat_is_figures_by_hour_of_the_week(past):
    _, parts = past
    question = Question(now=datetime.fromtimestamp(NOW, UTC), zone=ZONES[0])
    cells = series.heat(parts, question)
    assert [cell.hour for cell in cells] == list(range(168))
    found = dict(waits.by(parts, question, Dimension.HOUR_OF_WEEK))
    for cell in cells:
        figures = found.get(str(cell.hour))
        if figures is None:
            assert (cell.jobs, cell.median_s) == (0, None)
        else:
            assert cell.jobs == figures.wait.n
            assert (cell.median_s, cell.p90_s) == (figures.wait.median_s, figures.wait.p90_s)


@pytest.mark.parametrize("question", list(questions()))
def test_distribution_and_survival(past, question):
    rows, parts = past
    started, _, left = parts_of(chosen(rows, question), question)
    times = sorted(waited(row, question) for row in started)
    runs = [run_time(row) for row in chosen(rows, question) if has_ended(row)]
    found = series.distribution(parts, question, LOG_BOUNDS)
    assert (found.waits, found.runs) == (len(times), len(runs))
    for bar in found.bars:
        high = bar.high_s or math.inf
        assert bar.waits == sum(bar.low_s <= one < high for one in times)
        assert bar.runs == sum(bar.low_s <= one < high for one in runs)
    for seconds, share in found.wait_ecdf:
        assert share == pytest.approx(sum(one <= seconds for one in times) / len(times))
    survival = series.survival(parts, question)
    assert (survival.events, survival.censored) == (len(times), len(left))
    curve = kaplan_meier(times, left)
    for seconds, share in survival.all:
        expected = [still for at, still in curve if at <= seconds]
        assert share == pytest.approx(float(expected[-1]) if expected else 1.0)


@pytest.mark.parametrize("dimension", [None, Dimension.GROUP, Dimension.SUBMIT_MONTH])
def test_causes(past, dimension):
    rows, parts = past
    question = Question(now=datetime.fromtimestamp(NOW, UTC))
    expected = defaultdict(lambda: dict.fromkeys(Cause, 0))
    for row in rows:
        key = key_of(row, dimension, "UTC") if dimension else ""
        for cause in Cause:
            expected[key][cause] += row[f"cause_{cause}"] or 0
        if row["state"] == "WAITING" and not row["source"]:
            cause = Cause.PRIORITY if row["cause_now"] else Cause.UNKNOWN
            expected[key][cause] += NOW - row["seen_at"]
    found = causes.causes(parts, question, dimension)
    assert {row.key: dict(row.seconds) for row in found} == dict(expected)
    assert sum(row.jobs for row in found) == len(rows)


def test_without_rows_there_are_no_figures():
    question = Question(now=datetime.fromtimestamp(NOW, UTC))
    assert waits.figures([], question).jobs == 0
    assert waits.by([], question, Dimension.GROUP) == []
    assert series.over_time([], question, Step.DAY) == []
    assert len(series.heat([], question)) == 168
    assert series.survival([], question).all == ()
