"""A training run in the API: the same facts as on the job's page. Moments are UTC; the files' own
words are their owner's alone."""

from typing import Any

from gateway.core.goodput import Goodput, Use
from gateway.core.training.checkpoints import Checkpoint, resumes_from
from gateway.core.training.lines import Event
from gateway.services.training_run import Stretch, TrainingRun
from gateway.web.apijson import dump
from gateway.web.costjson import amount
from gateway.web.training_texts import moment_of, told_text
from gateway.web.views.traincharts import Figures

_OWN = frozenset({"path", "resume_path", "place", "error", "text", "reason"})


def training(run: TrainingRun, figures: Figures, *, cap: int | None, own: bool) -> dict[str, Any]:
    """`own`: the caller owns the job's files."""
    taken = resumes_from(run.checkpoints)
    return {
        "run": run.name,
        "jobs": [job.id for job in run.jobs],
        "step": run.step,
        "waited_seconds": int(run.waited.total_seconds()),
        "ran_seconds": int(run.ran.total_seconds()),
        "restarts": run.restarts,
        "max_restarts": cap,
        "steps_lost": run.steps_lost,
        "goodput": _goodput(run.goodput),
        "own_goodput": _goodput(run.own),
        "cost": _cost(run),
        "tokens_per_second": figures.tokens_per_second,
        "mfu": figures.mfu,
        "mfu_definition": figures.mfu_note,
        "stretches": [_stretch(one) for one in run.stretches],
        "checkpoints": [_checkpoint(one, own=own) for one in run.checkpoints],
        "resumes_from": taken.step if taken else None,
        "events": [_event(one, own=own) for one in run.events],
    }


def _goodput(found: Goodput) -> dict[str, int]:
    """Card-seconds; they sum to `total`."""
    return {"total": found.total} | {use.value: found.parts[use] for use in Use}


def _cost(run: TrainingRun) -> dict[str, Any] | None:
    cost = run.cost
    if cost is None:
        return None
    return {
        "total": amount(cost.total),
        "charged": amount(cost.charged),
        "accrued": amount(cost.accrued),
        "reviews": cost.reviews,
    }


def _stretch(one: Stretch) -> dict[str, Any]:
    return {
        "job": one.job.id,
        "state": one.state,
        "start": dump(one.start),
        "end": dump(one.end),
        "queue_wait_seconds": None if one.wait is None else int(one.wait.total_seconds()),
        "ran_seconds": int(one.ran.total_seconds()),
        "charged": one.is_charged,
        "resumed_at_step": one.resumed,
        "reached_step": one.reached,
        "steps_lost_before": one.lost,
        "goodput": _goodput(one.goodput),
    }


def _checkpoint(one: Checkpoint, *, own: bool) -> dict[str, Any]:
    found = {
        "step": one.step,
        "at": dump(moment_of(one.at)),
        "seconds": one.seconds,
        "bytes": one.bytes,
        "on_cluster": one.local,
        "in_second_place": one.is_safe,
    }
    return found | ({"path": one.path, "place": one.place} if own else {})


def _event(one: Event, *, own: bool) -> dict[str, Any]:
    facts = {name: value for name, value in one.facts.items() if own or name not in _OWN}
    return {
        "at": dump(moment_of(one.at)),
        "kind": one.kind,
        "restart": one.restart,
        "step": one.step,
        "facts": facts,
        "message": told_text(one),
    }
