"""Keep with a submission what was forecast for it: ours, and Slurm's where it was asked."""

from dataclasses import replace
from datetime import datetime

from gateway.core.forecast import Ask, Forecast, ForecastSource, NoForecast
from gateway.services.forecast_keep import times
from gateway.store import forecasts as store
from gateway.store.forecasts import Made
from gateway.store.queries.forecasts import SUBMIT
from gateway.store.uow import Begin


def keep(
    submission_id: int,
    asked: Ask,
    *,
    ours: Forecast | NoForecast,
    model: str | None,
    slurm: datetime | None,
    begin: Begin,
) -> None:
    """Once: a form that is posted again was told before. Nothing where nothing was told."""
    made = []
    if isinstance(ours, Forecast):
        p50, p90 = times(ours, asked.at)
        told = _told(submission_id, asked, p50)
        made.append(replace(told, p90_at=p90, jobs=ours.jobs, model=model))
    if slurm is not None:
        made.append(replace(_told(submission_id, asked, slurm), source=ForecastSource.SLURM))
    if not made:
        return
    with begin() as session:
        if not store.is_kept(session, submission_id):
            store.keep(session, made)


def _told(submission_id: int, asked: Ask, p50: datetime) -> Made:
    return Made(
        job_id=None,
        submission_id=submission_id,
        made_at=asked.at,
        moment=SUBMIT,
        source=ForecastSource.HISTORY,
        p50_at=p50,
        p90_at=None,
        partition=asked.partition,
        group_name=asked.group,
        qos=asked.qos,
        gpus=asked.gpus,
        gpu_type=asked.gpu_type,
        limit_minutes=asked.limit_minutes,
        jobs=0,
        model=None,
    )
