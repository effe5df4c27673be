"""Keep with a submission what was forecast for it: ours, and Slurm's where it was asked."""

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
        made.append(_made(submission_id, asked, ForecastSource.HISTORY, p50, p90, ours.jobs, model))
    if slurm is not None:
        made.append(_made(submission_id, asked, ForecastSource.SLURM, slurm, None, 0, None))
    if not made:
        return
    with begin() as session:
        if not store.is_kept(session, submission_id):
            store.keep(session, made)


def _made(
    submission_id: int,
    asked: Ask,
    source: ForecastSource,
    p50: datetime,
    p90: datetime | None,
    jobs: int,
    model: str | None,
) -> Made:
    return Made(
        job_id=None,
        submission_id=submission_id,
        made_at=asked.at,
        moment=SUBMIT,
        source=source,
        p50_at=p50,
        p90_at=p90,
        partition=asked.partition,
        group_name=asked.group,
        qos=asked.qos,
        gpus=asked.gpus,
        gpu_type=asked.gpu_type,
        limit_minutes=asked.limit_minutes,
        jobs=jobs,
        model=model,
    )
