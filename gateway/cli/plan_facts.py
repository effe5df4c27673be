"""What `sluice plan --json` says. The keys are API: they are added to, not changed."""

from collections.abc import Mapping
from typing import Any

from gateway.cli.output import amounts
from gateway.cli.plan_texts import SOURCES, told
from gateway.core.planner.figures import GB, Figure
from gateway.core.planner.plan import Budget, Cost, Plan

FIGURES = 4  # significant ones: an estimate has no more


def facts(plan: Plan, currency: str) -> dict[str, Any]:
    return {
        **_asked(plan),
        **_memory(plan),
        **_time(plan),
        "cost": _cost(plan.cost, currency),
        "checkpoint": _checkpoint(plan),
        "within": _within(plan),
        "budget": _budget(plan.budget),
        "notices": [
            {"code": one.code, **dict(one.facts), "text": told(one)} for one in plan.notices
        ],
        "explain": {name: _explained(figure) for name, figure in figures(plan).items()},
    }


def figures(plan: Plan) -> Mapping[str, Figure]:
    """Every number that has a formula, by a name for it."""
    parts = {f"memory.{name}": figure for name, figure in plan.memory.parts if name != "overhead"}
    parts |= {f"memory.overhead.{name}": figure for name, figure in plan.memory.overheads}
    return parts | {
        "parameters": plan.model.counted,
        "host_memory": plan.memory.host,
        "flops_per_token": plan.speed.flops_per_token,
        "mfu": plan.speed.mfu.figure,
        "hours": plan.speed.hours,
        "checkpoint.size": plan.checkpoint.size,
        "checkpoint.disk": plan.checkpoint.disk,
        "checkpoint.save": plan.checkpoint.save,
        "checkpoint.interval": plan.checkpoint.interval,
        "checkpoint.waste": plan.checkpoint.waste,
    }


def rounded(value: float) -> float:
    return float(f"{value:.{FIGURES}g}")


def gigabytes(figure: Figure) -> float:
    return rounded(figure.value / GB)


def band(figure: Figure, unit: float = 1.0) -> list[float]:
    return [rounded(figure.low / unit), rounded(figure.high / unit)]


def _asked(plan: Plan) -> dict[str, Any]:
    size, used = plan.model.dimensions, plan.setup
    return {
        "model": {
            "parameters": plan.model.params,
            "layers": size.layers,
            "hidden": size.hidden,
            "heads": size.heads,
            "vocab": size.vocab,
            "sequence": plan.model.sequence,
            "dimensions_assumed": plan.model.is_assumed,
        },
        "tokens": plan.tokens,
        "card": {
            "name": plan.card.name,
            "memory_gb": plan.card.memory_gb,
            "tflops": plan.card.peak(used.precision) / 1e12,
            "source": plan.card.source,
        },
        "gpus": used.gpus,
        "nodes": used.nodes,
        "strategy": used.strategy.name,
        "precision": used.precision.value,
        "micro_batch": used.micro_batch,
        "recompute": used.recompute.value,
    }


def _memory(plan: Plan) -> dict[str, Any]:
    needed = plan.memory
    parts = {name: gigabytes(figure) for name, figure in needed.parts}
    return {
        "fits": plan.fit.value != "no",
        "fit": plan.fit.value,
        "fits_host": plan.fits_host,
        "memory_per_gpu_gb": parts | {"total": gigabytes(needed.total)},
        "memory_band_gb": band(needed.total, GB),
        "overhead_gb": {name: gigabytes(figure) for name, figure in needed.overheads},
        "host_memory_gb": gigabytes(needed.host),
        "smallest": [
            {
                "strategy": one.strategy,
                "gpus": one.gpus,
                "memory_per_gpu_gb": gigabytes(one.total),
                "host_memory_gb": gigabytes(one.host),
                "is_rough": one.is_rough,
            }
            for one in plan.fewest
        ],
        "changes": [{"kind": one.kind, "values": list(one.values)} for one in plan.changes],
    }


def _time(plan: Plan) -> dict[str, Any]:
    speed = plan.speed
    return {
        "hours": rounded(speed.hours.value),
        "hours_band": band(speed.hours),
        "days": rounded(speed.hours.value / 24),
        "mfu": rounded(speed.mfu.figure.value),
        "mfu_origin": speed.mfu.origin,
        "mfu_jobs": speed.mfu.jobs,
        "flops_per_token": speed.flops_per_token.value,
        "attention_counted": speed.is_attention_counted,
        "attention_share": rounded(speed.attention_share),
        "tokens_per_second": rounded(speed.tokens_per_second),
        "step_seconds": rounded(speed.step_seconds),
    }


def _cost(cost: Cost | None, currency: str) -> dict[str, Any] | None:
    if cost is None:
        return None
    return {
        "currency": currency,
        "offers": [
            {
                "kind": one.rate.kind,
                "name": one.rate.name,
                "waste": rounded(one.waste),
                "hours": rounded(one.hours),
                "card_seconds": one.unit_seconds,
            }
            | amounts(
                per_hour=one.rate.per_hour,
                factor=one.rate.factor_millionths,
                work=one.work,
                expected=one.expected,
            )
            for one in cost.offers
        ],
        "cheapest": cost.cheapest.rate.name,
        "crossings": [
            {
                "cheaper_an_hour": one.cheap,
                "than": one.dear,
                "up_to_waste": rounded(float(one.waste)),
                "is_passed": one.is_passed,
            }
            for one in cost.crossings
        ],
        "interrupted": [
            {
                "name": one.name,
                "every_hours": rounded(one.hours),
                "origin": one.origin,
                "preemptions": one.events,
            }
            for one in cost.interrupted
        ],
    }


def _checkpoint(plan: Plan) -> dict[str, Any]:
    found = plan.checkpoint
    return {
        "size_gb": gigabytes(found.size),
        "size_band_gb": band(found.size, GB),
        "disk_gb": gigabytes(found.disk),
        "save_seconds": rounded(found.save.value),
        "interval_seconds": rounded(found.interval.value),
        "interval_daly_seconds": rounded(found.interval_daly),
        "interrupted_every_seconds": rounded(found.given.between),
        "waste": rounded(found.waste.value),
        "signal_lead_seconds": found.signal_lead,
    }


def _within(plan: Plan) -> dict[str, Any] | None:
    found = plan.within
    if found is None:
        return None
    return {
        "hours": found.hours,
        "gpus": found.gpus,
        "tokens": rounded(found.tokens),
        "mfu": rounded(found.mfu),
    }


def _budget(found: Budget | None) -> dict[str, Any] | None:
    if found is None:
        return None
    each = {"is_enough_for": list(found.kinds)}
    return each | amounts(amount=found.amount, per_card_hour=int(found.per_card_hour))


def _explained(figure: Figure) -> dict[str, Any]:
    return {
        "value": rounded(figure.value),
        "band": band(figure),
        "formula": figure.formula,
        "sources": [{"key": one.value, "text": SOURCES[one]} for one in figure.sources],
    }
