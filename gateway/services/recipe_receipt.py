"""What a job measured, as a recipe's receipt tells it."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gateway.core.mfu import card_of, mfu, model_of
from gateway.core.planner.cards import Card, Cards
from gateway.core.recipes import MOST_METRICS, Receipt, is_name
from gateway.core.training.sums import Point
from gateway.services import costs, node_types
from gateway.store import results
from gateway.store.queries import costs as cost_reads
from gateway.store.queries import job as jobs
from gateway.store.queries import training as reads
from gateway.store.queries.job import JobDetail

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy.orm import Session

_PLACES = 2000
_TELEMETRY_PLACES = 240


def measure(session: "Session", detail: JobDetail, *, cards: Cards, now: "datetime") -> Receipt:
    """Of one job, over all its stretches on nodes. The caller may see the job."""
    job = detail.row
    runs = jobs.runs(session, job.id)
    points = reads.points(session, job.id, places=_PLACES)
    kind = job.gpu_type or node_types.reader(session)(job.node_list, job.partition) or ""
    rate = _rate(points)
    spent = costs.of_job(session, job, now=now, gone_at=detail.left_queue_at)
    held = (
        cost_reads.of_submission(session, detail.submission.row.id) if detail.submission else None
    )
    first = runs[0] if runs else None
    began = first.start_time if first else job.start_time
    eligible = first.eligible_time if first else job.eligible_time
    return Receipt(
        cluster=job.cluster,
        ran_at=float(int((began or job.submit_time).timestamp())),
        gpu_type=kind if job.gpus else "",
        gpus=job.gpus,
        run_seconds=sum(run.elapsed_seconds for run in runs),
        wait_seconds=max(0, int((began - eligible).total_seconds()))
        if began and eligible
        else None,
        step_seconds=_step(points),
        tokens_per_second=rate,
        mfu=_mfu(session, detail, rate, card_of(kind, cards)),
        peak_bytes=_peak(session, job.id, points),
        cost=None if spent is None else spent.cost.total,
        quoted=None if held is None else held.per_task * held.tasks,
        metrics=_metrics(session, job.id, points),
    )


def _step(points: Iterable[Point]) -> float | None:
    """The mean time of a step, as the script told it or as its lines came."""
    found = list(points)
    timed = sum(point.timed for point in found)
    if timed:
        return sum(point.seconds for point in found) / timed
    steps, passed = 0, 0.0
    for stretch in _stretches(found):
        steps += stretch[-1].last_step - stretch[0].first_step
        passed += stretch[-1].last_at - stretch[0].first_at
    return passed / steps if steps > 0 and passed > 0 else None


def _rate(points: Iterable[Point]) -> float | None:
    """Tokens a second over all stretches. What a stretch's first line counts was before it."""
    tokens, passed = 0.0, 0.0
    for stretch in _stretches(list(points)):
        lines = sum(point.lines for point in stretch)
        tokens += sum(point.tokens for point in stretch) * (lines - 1) / lines if lines else 0.0
        passed += stretch[-1].last_at - stretch[0].first_at
    return tokens / passed if tokens > 0 and passed > 0 else None


def _stretches(points: list[Point]) -> list[list[Point]]:
    found: dict[int, list[Point]] = {}
    for point in points:
        found.setdefault(point.restart, []).append(point)
    return list(found.values())


def _mfu(
    session: "Session", detail: JobDetail, rate: float | None, card: Card | None
) -> float | None:
    job = detail.row
    events = reads.events(session, [job.id])[job.id]
    told = [event.facts for event in events if event.kind == "model"]
    model = model_of(told[-1]) if told else None
    if rate is None or model is None or card is None:
        return None
    return mfu(rate, model, cards=job.gpus, peak_flops=card.tflops_16bit * 1e12)


def _peak(session: "Session", job_id: int, points: Iterable[Point]) -> int | None:
    told = max((point.peak_bytes for point in points), default=0)
    if told:
        return told
    seen = reads.use_of_cards(session, job_id, places=_TELEMETRY_PLACES)
    return max((use.mem for use in seen if use.mem), default=None)


def _metrics(session: "Session", job_id: int, points: list[Point]) -> dict[str, float]:
    """The last value of each name that the job reported, and its loss."""
    found = {
        one.name: float(one.last)
        for one in results.last(session, [job_id])[job_id]
        if one.last is not None and is_name(one.name)
    }
    losses = [point.loss / point.losses for point in points if point.losses]
    if losses:
        found.setdefault("loss", losses[-1])
    return dict(sorted(found.items())[:MOST_METRICS])
