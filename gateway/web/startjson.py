"""Forecasts of starts as the API gives them: seconds from now, moments in UTC, amounts exact."""

from datetime import datetime
from typing import Any

from gateway.core.forecast import Forecast, NoForecast
from gateway.services.forecast_form import Instead, Starts
from gateway.web.views.jobstart import JobStartView


def starts(found: Starts) -> dict[str, Any]:
    own, like = found.own, found.like
    told = None if isinstance(own, NoForecast) else _forecast(own)
    return {
        "forecast": told,
        "why": own.value if isinstance(own, NoForecast) else None,
        "record": None
        if like is None
        else {"judged": like.counted, "started_by_p90": round(like.share, 4)},
        "instead": [_instead(one) for one in found.instead],
    }


def job(found: JobStartView | None) -> dict[str, Any]:
    """Null where there is none; `kept` are those of the record, oldest first."""
    if found is None:
        return {"p50_at": None, "p90_at": None, "slurm_at": None, "made_at": None, "kept": []}
    return {
        "p50_at": _iso(found.p50_at),
        "p90_at": _iso(found.p90_at),
        "slurm_at": _iso(found.slurm_at),
        "made_at": _iso(found.made_at),
        "kept": [
            {"made_at": _iso(one.made_at), "p50_at": _iso(one.p50_at), "p90_at": _iso(one.p90_at)}
            | {"source": one.key}
            for one in found.before
        ],
    }


def _forecast(one: Forecast) -> dict[str, Any]:
    return {
        "p50_s": one.p50_s,
        "p90_s": one.p90_s,
        "source": one.source.value,
        "jobs": one.jobs,
    }


def _instead(one: Instead) -> dict[str, Any]:
    return {
        "change": one.change.value,
        "sets": dict(one.sets),
        "forecast": _forecast(one.start),
        "costs_more_millionths": one.costs_more,
    }


def _iso(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()
