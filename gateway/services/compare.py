"""Several jobs side by side: what differs between them, what they reached, waited, ran and cost."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from gateway.core.access import Viewer, job_rights
from gateway.core.credits import Credits
from gateway.core.goodput import Use
from gateway.core.results import Cell, Curve, Result
from gateway.core.waits import RunTimes, job_waits
from gateway.errors import NotFound
from gateway.services import costs
from gateway.services.training_run import training_run
from gateway.store import results as store
from gateway.store.queries import job as jobs
from gateway.store.queries import training as training_reads
from gateway.store.queries.job import JobDetail, RunRow
from gateway.store.queries.jobs import JobRow

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

MOST_JOBS = 8
# Of the form, beside what the job's own row says; who may read the form sees them.
_TYPED = ("environment", "nproc_per_node", "working_directory")


@dataclass(frozen=True, slots=True)
class Stretch:
    """On nodes, in seconds since 1970."""

    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Compared:
    """`form` is what was typed, by field; None: the form is its owner's alone, or there is none.
    `cost` in millionths, accrued money included; None: nothing yet, or a site without prices.
    `goodput` from 0 to 1; None: nothing was charged."""

    job: JobRow
    form: Mapping[str, str] | None
    results: tuple[Result, ...]
    wait: timedelta | None
    run_time: timedelta | None
    cost: Credits | None
    goodput: float | None
    stretches: tuple[Stretch, ...]

    @property
    def facts(self) -> dict[str, str]:
        """What may differ between jobs, by name."""
        job = self.job
        found = {
            "template": job.template or "",
            "name": job.name,
            "user": job.user,
            "group": job.group,
            "partition": job.partition,
            "qos": job.qos or "",
            "gpu_type": job.gpu_type or "",
            "gpus": str(job.gpus),
            "nodes": str(job.nodes),
            "time_limit": "" if job.time_limit_minutes is None else str(job.time_limit_minutes),
            "state": job.state,
        }
        return found | dict(self.form or {})


def compare(
    session: "Session", job_ids: Sequence[int], *, viewer: Viewer, now: datetime
) -> list[Compared]:
    """The first MOST_JOBS of them, each once, in this order; NotFound for one that this viewer
    does not see."""
    details = [_seen(session, one, viewer) for one in list(dict.fromkeys(job_ids))[:MOST_JOBS]]
    rows = [one.row for one in details]
    spent = costs.of_jobs(session, rows, now=now) or {}
    told = store.last(session, [row.id for row in rows])
    found = []
    for one in details:
        runs, price = jobs.runs(session, one.row.id), spent.get(one.row.id)
        times = job_waits(_times(one, runs), now)
        found.append(
            Compared(
                job=one.row,
                form=_form(one, viewer),
                results=told[one.row.id],
                wait=times.first.queue_wait,
                run_time=times.run_time,
                cost=price.total if price else None,
                goodput=_goodput(session, one.row, viewer, now),
                stretches=tuple(_stretches(one, runs, now)),
            )
        )
    return found


def differing(compared: Sequence[Compared]) -> dict[str, list[str | None]]:
    """The facts that are not the same in all, by name, a value a job; None: not told, for the
    form is another's."""
    names = dict.fromkeys(name for one in compared for name in one.facts)
    rows: dict[str, list[str | None]] = {}
    for name in names:
        default = None if any(one.form is None for one in compared) else ""
        values = [one.facts.get(name, "" if one.form is not None else default) for one in compared]
        if len({value for value in values if value is not None}) > 1:
            rows[name] = values
    return rows


def names(compared: Sequence[Compared]) -> list[str]:
    """What they reported: first what most of them did."""
    counts: dict[str, int] = {}
    for one in compared:
        for result in one.results:
            counts[result.name] = counts.get(result.name, 0) + 1
    return sorted(counts, key=lambda name: (-counts[name], name))


def winners(results: Sequence[Result | None]) -> set[int]:
    """The places of the best last value, where the name says which that is and not all are."""
    known = [one for one in results if one is not None and one.last is not None]
    if len(known) < 2 or known[0].lower_is_better is None:
        return set()
    values = [one.last for one in known if one.last is not None]
    best = min(values) if known[0].lower_is_better else max(values)
    won = {n for n, one in enumerate(results) if one is not None and one.last == best}
    return won if len(won) < len(known) else set()


def curve(session: "Session", job_id: int, name: str) -> Curve | None:
    return next(iter(store.curves(session, job_id, [name])), None)


def along(one: Compared, found: Curve, axis: str) -> list[tuple[float, Cell]]:
    """The cells of a curve by `step`, by `time` on nodes in seconds, or by `cost` in millionths
    (what the job has cost is spread evenly over its time on nodes)."""
    if axis == "step":
        return [(float(cell.step or 0), cell) for cell in found.by_step.cells]
    total = ran(one.stretches, float("inf"))
    share = (one.cost or 0) / total if axis == "cost" and total else 1.0
    return [(ran(one.stretches, cell.at) * share, cell) for cell in found.by_time.cells]


def ran(stretches: Sequence[Stretch], until: float) -> float:
    """Seconds on nodes until then."""
    return sum(max(0.0, min(one.end, until) - one.start) for one in stretches)


def facts(one: Compared) -> dict[str, Any]:
    """For programs: seconds, and money in millionths."""
    return {
        "job_id": one.job.id,
        "slurm_id": one.job.slurm_id,
        **one.facts,
        "queue_wait_seconds": None if one.wait is None else int(one.wait.total_seconds()),
        "run_seconds": None if one.run_time is None else int(one.run_time.total_seconds()),
        "cost_millionths": one.cost,
        "goodput": one.goodput,
        "results": [result_facts(result) for result in one.results],
    }


def all_facts(compared: Sequence[Compared]) -> dict[str, Any]:
    """For programs: the jobs, and of what differs a value a job, in their order."""
    return {"jobs": [facts(one) for one in compared], "differing": differing(compared)}


def curve_facts(one: Curve) -> dict[str, Any]:
    """For programs: the cells by time and by step, `at` in seconds since 1970."""
    axes = {"by_time": one.by_time, "by_step": one.by_step}
    return {
        name: {"width": axis.wide, "cells": [asdict(cell) for cell in axis.cells]}
        for name, axis in axes.items()
    }


def result_facts(one: Result) -> dict[str, Any]:
    """For programs; `at` in seconds since 1970."""
    return {
        "name": one.name,
        "last": one.last,
        "step": one.step,
        "at": one.at,
        "lowest": one.low,
        "lowest_step": one.low_step,
        "highest": one.high,
        "highest_step": one.high_step,
        "best": one.best[0] if one.best else None,
        "count": one.count,
        "not_finite": one.odd,
    }


def _seen(session: "Session", job_id: int, viewer: Viewer) -> JobDetail:
    found = jobs.job(session, job_id)
    row = found.row if found else None
    if found is None or row is None:
        raise NotFound(f"no job {job_id}")
    if not job_rights(viewer, user=row.user, group=row.group).see:
        raise NotFound(f"no job {job_id}")
    return found


def _form(one: JobDetail, viewer: Viewer) -> dict[str, str] | None:
    owns = job_rights(viewer, user=one.row.user, group=one.row.group).read_files
    if one.submission is None or not owns:
        return None
    ask = one.submission.ask
    typed = {name: str(ask[name]) for name in _TYPED if ask.get(name) not in (None, "")}
    values = ask.get("values")
    own = values if isinstance(values, Mapping) else {}
    return typed | {str(name): str(value) for name, value in own.items() if value not in (None, "")}


def _goodput(session: "Session", row: JobRow, viewer: Viewer, now: datetime) -> float | None:
    """Only where the training told of itself: elsewhere there are no steps to go by."""
    if training_reads.brief(session, row.id, saves=0) is None:
        return None
    own = training_run(session, row.id, viewer=viewer, now=now).own
    return own.share(Use.USEFUL) if own.total and own.best is not None else None


def _times(one: JobDetail, runs: Sequence[RunRow]) -> list[RunTimes]:
    found = [
        RunTimes(
            run.submit_time,
            run.eligible_time,
            run.start_time,
            run.end_time,
            timedelta(seconds=run.elapsed_seconds) if run.end_time else None,
        )
        for run in runs
    ]
    if _is_newer(one, runs):
        row = one.row
        end = None if row.active else row.end_time
        found.append(RunTimes(one.last_submit_time, row.eligible_time, row.start_time, end, None))
    return found


def _stretches(one: JobDetail, runs: Sequence[RunRow], now: datetime) -> list[Stretch]:
    found = [Stretch(run.start_time.timestamp(), (run.end_time or now).timestamp()) for run in runs]
    row = one.row
    if row.start_time is not None and _is_newer(one, runs):
        end = now if row.active or row.end_time is None else row.end_time
        found.append(Stretch(row.start_time.timestamp(), end.timestamp()))
    return found


def _is_newer(one: JobDetail, runs: Sequence[RunRow]) -> bool:
    """The queue shows a stretch that accounting has not told yet."""
    return all(run.submit_time != one.last_submit_time for run in runs)
