"""The preemption record and the adviser's answer as JSON has them. Hours are of nodes, unless they
are hours of the day."""

from typing import Any

from gateway.cli.output import amounts, iso
from gateway.core.spot import Advice, Outlook
from gateway.core.spot_record import HOURS, Cell, Rate, Record, minutes_to, survival
from gateway.services.spot import Advised, SiteRecord

QUANTILES = (0.25, 0.5, 0.75, 0.9)


def of_record(site: SiteRecord, zone: str) -> dict[str, Any]:
    return {
        "timezone": zone,
        "hidden_types": site.hidden,
        "records": [_record(one) for one in site.records],
    }


def of_advice(found: Advised) -> dict[str, Any]:
    advice = found.advice
    mean = advice.between
    return {
        "qos": found.qos,
        "normal_qos": found.normal,
        "estimate": True,
        "between_preemptions": {
            "hours": _hours(mean.seconds),
            "origin": mean.origin.value,
            "gpu_type": found.gpu_type or None,
            "preemptions": mean.events,
            "runs": mean.runs,
            "low_hours": _hours(mean.low),
            "high_hours": _hours(mean.high),
        },
        "interval_minutes": _minutes(advice.work.interval),
        "best_interval_minutes": _minutes(advice.best),
        "young_interval_minutes": _minutes(advice.young),
        "wait_minutes": _minutes(advice.work.wait),
        "wait_requeues": found.requeues,
        "spot": _outlook(advice.spot),
        "spot_at_best": _outlook(advice.at_best),
        "normal": _outlook(advice.normal),
        "cost": _cost(advice),
    }


def _record(record: Record) -> dict[str, Any]:
    steps = survival(record.lengths)
    return {
        "qos": record.qos,
        "gpu_type": record.gpu_type or None,
        "since": iso(record.since),
        "until": iso(record.until),
        "runs": record.runs,
        "people": record.whole.people,
        **_sums(record.whole),
        "hours_of_day": [{"hour": hour, **_cell(record.hours[hour])} for hour in range(HOURS)],
        "hours_to_preemption": {
            f"p{round(share * 100)}": None if at is None else round(at / 60, 3)
            for share, at in ((share, minutes_to(steps, share)) for share in QUANTILES)
        },
        "survival": [
            {"hours": round(one.minutes / 60, 3), "share": round(one.share, 6), "at_risk": n}
            for one, n in ((one, one.at_risk) for one in steps)
        ],
        "requeues": record.requeues,
        "requeue_wait_minutes": _minutes(record.requeue_wait),
    }


def _cell(cell: Cell | None) -> dict[str, Any]:
    return {"hidden": True} if cell is None else {"hidden": False, **_sums(cell)}


def _sums(cell: Cell) -> dict[str, Any]:
    return {
        "exposure_hours": _hours(cell.seconds),
        "card_hours": _hours(cell.card_seconds),
        "preemptions": cell.events,
        "per_hour": _rate(cell.rate),
    }


def _rate(rate: Rate | None) -> dict[str, Any] | None:
    """Of too few preemptions the interval alone."""
    if rate is None:
        return None
    return {
        "value": round(rate.per_hour, 6) if rate.is_enough else None,
        "low": round(rate.low, 6),
        "high": round(rate.high, 6),
        "is_enough": rate.is_enough,
    }


def _outlook(found: Outlook | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "finish_mean_hours": _hours(found.mean),
        "finish_p50_hours": _hours(found.p50),
        "finish_p90_hours": _hours(found.p90),
        "on_nodes_hours": _hours(found.on_nodes),
        "last_run_hours": _hours(found.last_run),
        "preemptions": round(found.preemptions, 3),
        "lost_hours": _hours(found.lost),
    }


def _cost(advice: Advice) -> dict[str, Any] | None:
    if advice.costs is None:
        return None
    found = advice.costs
    return {
        "gives_preempted_runs_back": found.gives_back,
        **amounts(
            spot=found.spot,
            spot_given_back=found.spot_given_back,
            spot_by_rule=found.by_rule,
            normal=found.normal,
        ),
    }


def _hours(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds / 3600, 3)


def _minutes(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds / 60, 2)
