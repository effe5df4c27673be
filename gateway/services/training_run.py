"""One training run over all its jobs: what it waited, ran, lost, cost, and was good for.

Money is that of the charges; what the run told of itself only says what the charged card-seconds
were used for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from gateway.core import goodput
from gateway.core.access import Viewer, job_rights
from gateway.core.credits import Credits
from gateway.core.goodput import Goodput, Mark, RunSigns
from gateway.core.mfu import Model, model_of
from gateway.core.training.checkpoints import Checkpoint, checkpoints
from gateway.core.training.lines import DONE_ALREADY, Event
from gateway.core.training.sums import Point
from gateway.services import costs
from gateway.store.queries import job as jobs
from gateway.store.queries import training as reads
from gateway.store.queries.job import RunRow
from gateway.store.queries.jobs import JobRow
from gateway.store.queries.training import LinkedJob

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

# A week in sums of five minutes: fine enough for shares of it.
_PLACES = 2000


@dataclass(frozen=True, slots=True)
class Stretch:
    """One stretch on nodes. `resumed` is the step it began with, `reached` the last one that it
    told, `lost` what of the stretch before had to be made again. None: not told."""

    job: JobRow
    state: str
    start: datetime
    end: datetime | None
    wait: timedelta | None
    ran: timedelta
    is_charged: bool
    resumed: int | None
    reached: int | None
    lost: int | None
    goodput: Goodput


@dataclass(frozen=True, slots=True)
class Cost:
    """Sums over the jobs: charged, refunds taken off, and accrued since. None: a site without
    prices."""

    charged: Credits
    accrued: Credits
    reviews: int

    @property
    def total(self) -> Credits:
        return Credits(self.charged + self.accrued)


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """`name` is what was typed for the run. `events` and `points` are those of the one job that
    was asked for, `checkpoints` those of all. `done_by`: the last job before it that told the
    run's end."""

    name: str | None
    jobs: tuple[JobRow, ...]
    stretches: tuple[Stretch, ...]
    goodput: Goodput
    own: Goodput
    cost: Cost | None
    model: Model | None
    checkpoints: tuple[Checkpoint, ...]
    events: tuple[Event, ...]
    points: tuple[Point, ...]
    done_by: JobRow | None

    @property
    def is_done_already(self) -> bool:
        """The job that was asked for found the run done, and trained nothing."""
        began = any(event.kind in {"start", "done"} for event in self.events)
        return not began and any(e.facts.get("reason") == DONE_ALREADY for e in self.events)

    @property
    def waited(self) -> timedelta:
        return sum((one.wait for one in self.stretches if one.wait), timedelta())

    @property
    def ran(self) -> timedelta:
        return sum((one.ran for one in self.stretches), timedelta())

    @property
    def restarts(self) -> int:
        """How often it went on after a stretch on nodes, in whichever job."""
        return max(0, len(self.stretches) - 1)

    @property
    def steps_lost(self) -> int | None:
        known = [one.lost for one in self.stretches if one.lost is not None]
        return sum(known) if known else None

    @property
    def step(self) -> int | None:
        return self.goodput.best


def training_run(session: "Session", job_id: int, *, viewer: Viewer, now: datetime) -> TrainingRun:
    """Of a job that this viewer sees, with those earlier and later jobs of the same run that they
    see too: the owner may have sent some for another group."""
    name, jobs_of_run = reads.linked(session, job_id)
    linked = [
        one for one in jobs_of_run if job_rights(viewer, user=one.row.user, group=one.row.group).see
    ]
    told = reads.events(session, [one.row.id for one in linked])
    points = {one.row.id: reads.points(session, one.row.id, places=_PLACES) for one in linked}
    paid = reads.charged(session, told)
    stretches: list[Stretch] = []
    for one in linked:
        found = _Told(told[one.row.id], points[one.row.id], reads.idle_minutes(session, one.row.id))
        stretches += _of_job(session, one, found, paid, before=stretches, now=now)
    all_events = sorted((e for found in told.values() for e in found), key=lambda e: e.at)
    models = [event.facts for event in told[job_id] if event.kind == "model"]
    return TrainingRun(
        name=name,
        jobs=tuple(one.row for one in linked),
        stretches=tuple(stretches),
        goodput=goodput.together(one.goodput for one in stretches),
        own=goodput.together(one.goodput for one in stretches if one.job.id == job_id),
        cost=_cost(session, [one.row for one in linked], now=now),
        model=model_of(models[-1]) if models else None,
        checkpoints=tuple(checkpoints(all_events)),
        events=tuple(told[job_id]),
        points=tuple(points[job_id]),
        done_by=_done_by([one.row for one in linked], told, before=job_id),
    )


def _done_by(
    rows: Sequence[JobRow], told: Mapping[int, Sequence[Event]], *, before: int
) -> JobRow | None:
    earlier = rows[: [row.id for row in rows].index(before)]
    for row in reversed(earlier):
        if any(event.kind == "done" for event in told[row.id]):
            return row
    return None


@dataclass(frozen=True, slots=True)
class _Told:
    events: Sequence[Event]
    points: Sequence[Point]
    idle: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class _OnNodes:
    """A run of accounting, or what the queue shows where accounting has none yet."""

    id: int | None
    state: str
    wait: timedelta | None
    start: datetime
    end: datetime | None
    gpus: int
    seconds: int


def _of_job(
    session: "Session",
    one: LinkedJob,
    told: _Told,
    paid: Mapping[int, int],
    *,
    before: Sequence[Stretch],
    now: datetime,
) -> list[Stretch]:
    found: list[Stretch] = []
    for run in _runs(jobs.runs(session, one.row.id), one, now):
        earlier = found[-1] if found else before[-1] if before else None
        found.append(_stretch(one.row, run, told, paid, earlier=earlier, now=now))
    return found


def _stretch(
    job: JobRow,
    run: _OnNodes,
    told: _Told,
    paid: Mapping[int, int],
    *,
    earlier: Stretch | None,
    now: datetime,
) -> Stretch:
    start, end = run.start.timestamp(), (run.end or now).timestamp()
    events = [event for event in told.events if start <= event.at <= end]
    marks = _marks(events, told.points, start, end)
    resumed = _resumed(events)
    reached = max((mark.step for mark in marks), default=None)
    charged = paid.get(run.id) if run.id is not None else None
    signs = RunSigns(
        start=start,
        end=end,
        card_seconds=run.gpus * run.seconds if charged is None else charged,
        began=_first(events, "start"),
        marks=marks,
        stalls=[event.at for event in events if event.kind == "stall"],
        over=max((e.at for e in events if e.kind in {"done", "stopped"}), default=None),
        idle=told.idle,
    )
    best = earlier.goodput.best if earlier else None
    return Stretch(
        job=job,
        state=run.state,
        start=run.start,
        end=run.end,
        wait=run.wait,
        ran=timedelta(seconds=run.seconds),
        is_charged=charged is not None,
        resumed=resumed,
        reached=reached,
        lost=goodput.steps_lost(earlier.reached, resumed) if earlier else None,
        goodput=goodput.of_run(signs, best=best),
    )


def _marks(
    events: Sequence[Event], points: Sequence[Point], start: float, end: float
) -> list[Mark]:
    found = [Mark(e.at, e.step) for e in events if e.kind == "ready" and e.step is not None]
    for point in points:
        for at, step in ((point.first_at, point.first_step), (point.last_at, point.last_step)):
            if start <= at <= end:
                found.append(Mark(at, step))
    return sorted(found, key=lambda mark: mark.at)


def _resumed(events: Sequence[Event]) -> int | None:
    """What was loaded; where the script does not tell, what the batch script chose."""
    for event in events:
        if event.kind == "ready":
            return event.step
    for event in events:
        if event.kind == "start":
            step: int = event.facts.get("resume_step", 0)
            return step
    return None


def _first(events: Sequence[Event], kind: str) -> float | None:
    return min((event.at for event in events if event.kind == kind), default=None)


def _runs(runs: Sequence[RunRow], one: LinkedJob, now: datetime) -> list[_OnNodes]:
    job = one.row
    found = [
        _OnNodes(
            id=run.id,
            state=run.state,
            wait=run.start_time - run.eligible_time if run.eligible_time else None,
            start=run.start_time,
            end=run.end_time,
            gpus=job.gpus if run.gpus is None else run.gpus,
            seconds=run.elapsed_seconds if run.end_time else _since(run.start_time, now),
        )
        for run in runs
    ]
    known = any(run.submit_time == one.last_submit_time for run in runs)
    if not known and job.start_time is not None and job.start_time >= one.last_submit_time:
        wait = job.start_time - job.eligible_time if job.eligible_time else None
        end = None if job.active else job.end_time
        seconds = _since(job.start_time, end or now)
        found.append(_OnNodes(None, job.state, wait, job.start_time, end, job.gpus, seconds))
    return found


def _since(start: datetime, until: datetime) -> int:
    return max(0, int((until - start).total_seconds()))


def _cost(session: "Session", rows: Sequence[JobRow], *, now: datetime) -> Cost | None:
    found = costs.of_jobs(session, rows, now=now)
    if found is None:
        return None
    return Cost(
        charged=Credits(sum(one.charged or 0 for one in found.values())),
        accrued=Credits(sum(one.accrued or 0 for one in found.values())),
        reviews=sum(one.reviews for one in found.values()),
    )
