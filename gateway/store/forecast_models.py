"""The tables of forecasts of starts. Nothing outside `store` imports this module."""

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from gateway.store.models import Base

_OPEN = text("started_at is null and left_at is null")
_UNLINKED = text("job_id is null")


class StartForecast(Base):
    """A forecast that was shown, as it was made, and what came of it. Only the outcome and the job
    are filled in later. `p90_at` None: Slurm's plan is one moment. `jobs` is how many waits it
    rests on, `model` which of ours made it."""

    __tablename__ = "start_forecast"
    __table_args__ = (
        CheckConstraint("moment in ('submit','waiting')", name="moment_known"),
        CheckConstraint("source in ('slurm','history')", name="source_known"),
        # The record: of one moment, newest first, by source and partition.
        Index(None, "moment", "made_at"),
        Index(None, "moment", "source", "partition", "made_at"),
        Index(None, "made_at"),
        # What the worker looks at: those of which nobody knows yet what came of them.
        Index(
            "ix_start_forecast_open",
            "job_id",
            sqlite_where=_OPEN,
            postgresql_where=_OPEN,
        ),
        Index(
            "ix_start_forecast_unlinked",
            "submission_id",
            sqlite_where=_UNLINKED,
            postgresql_where=_UNLINKED,
        ),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    job_id: Mapped[int | None] = mapped_column(ForeignKey("job.id"), index=True)
    submission_id: Mapped[int | None] = mapped_column(ForeignKey("submission.id"))
    made_at: Mapped[datetime]
    moment: Mapped[str]  # submit, waiting
    source: Mapped[str]  # core.forecast.ForecastSource
    p50_at: Mapped[datetime]
    p90_at: Mapped[datetime | None]
    partition: Mapped[str]
    group: Mapped[str] = mapped_column("group_name")
    qos: Mapped[str | None]
    gpus: Mapped[int]
    gpu_type: Mapped[str | None]
    limit_minutes: Mapped[int | None]
    jobs: Mapped[int]
    model: Mapped[str | None]
    started_at: Mapped[datetime | None]
    left_at: Mapped[datetime | None]  # it was gone without a start


class ForecastNow(Base):
    """The newest forecast of a job that waits, by source; made again every five minutes. `why` is
    there in the place of the times where there is none."""

    __tablename__ = "forecast_now"

    job_id: Mapped[int] = mapped_column(ForeignKey("job.id"), primary_key=True)
    source: Mapped[str] = mapped_column(primary_key=True)
    made_at: Mapped[datetime]
    p50_at: Mapped[datetime | None]
    p90_at: Mapped[datetime | None]
    jobs: Mapped[int]
    why: Mapped[str | None]  # core.forecast.NoForecast
