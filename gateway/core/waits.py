"""Queue wait, deferral and run time. Never one for another: each report says which it shows.

queue wait = start - eligible; deferral = eligible - submit (dependencies, holds, begin times: the
person's own doing); run time = Slurm's elapsed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

_ZERO = timedelta(0)


@dataclass(frozen=True, slots=True)
class RunTimes:
    """The times of one run, or of a job that never started. `elapsed` is Slurm's, when known."""

    submit: datetime
    eligible: datetime | None
    start: datetime | None
    end: datetime | None
    elapsed: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Waits:
    """None where the word has no meaning for this job. `so_far`: a wait that is not over."""

    queue_wait: timedelta | None
    deferral: timedelta | None
    run_time: timedelta | None
    waiting_so_far: timedelta | None = None
    gave_up_after: timedelta | None = None


def waits(
    submit: datetime,
    eligible: datetime | None,
    start: datetime | None,
    end: datetime | None,
    now: datetime,
    *,
    elapsed: timedelta | None = None,
) -> Waits:
    """The numbers of one run at `now`. An `end` in the future is only Slurm's forecast."""
    ended = end if end is not None and end <= now else None
    deferral = _between(submit, _first(eligible, start, ended, now))
    if start is not None:
        run_time = elapsed if elapsed is not None else _between(start, ended or now)
        return Waits(
            queue_wait=None if eligible is None else _between(eligible, start),
            deferral=None if eligible is None else deferral,
            run_time=run_time,
        )
    waited = None
    if eligible is not None and eligible <= (ended or now):
        waited = _between(eligible, ended or now)
    if ended is not None:
        return Waits(None, deferral, _ZERO, gave_up_after=waited)
    return Waits(None, deferral, None, waiting_so_far=waited)


def _first(*moments: datetime | None) -> datetime:
    """The earliest: a begin time that lies ahead has deferred the job only until now."""
    return min(moment for moment in moments if moment is not None)


def _between(earlier: datetime, later: datetime) -> timedelta:
    """Never negative: clocks of two hosts differ by a second or two."""
    return max(later - earlier, _ZERO)


@dataclass(frozen=True, slots=True)
class JobWaits:
    """A job over all its runs. A requeue sets Slurm's submit time anew; `submit` is the first."""

    submit: datetime
    first: Waits
    requeue_waits: tuple[timedelta, ...]  # of the later runs that started
    run_time: timedelta | None  # all runs together; None before the first start
    runs: int
    requeued_waiting: bool


def job_waits(records: Sequence[RunTimes], now: datetime) -> JobWaits:
    """All runs of one job, in any order; at least one record."""
    ordered = sorted(records, key=lambda run: run.submit)
    each = [
        waits(run.submit, run.eligible, run.start, run.end, now, elapsed=run.elapsed)
        for run in ordered
    ]
    started = [w for run, w in zip(ordered, each, strict=True) if run.start is not None]
    times = [w.run_time for w in each if w.run_time is not None]
    last = ordered[-1]
    return JobWaits(
        submit=ordered[0].submit,
        first=each[0],
        requeue_waits=tuple(w.queue_wait for w in each[1:] if w.queue_wait is not None),
        run_time=sum(times, _ZERO) if times else None,
        runs=len(started),
        requeued_waiting=len(ordered) > 1
        and last.start is None
        and (last.end is None or last.end > now),
    )
