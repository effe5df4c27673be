"""The table of metrics that jobs report under names of their own. Nothing outside `store` imports
this module.

They were read from files of a job's owner (docs/engineering/training.md): nothing counts for money.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Double, ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from gateway.store.models import Base


class JobMetric(Base):
    """A name of a job: core.results.Curve. `by_time` and `by_step` have at most MOST_CELLS cells,
    so a row never grows beyond some 100 kB; lists of values do not read them."""

    __tablename__ = "job_metric"

    job_id: Mapped[int] = mapped_column(ForeignKey("job.id"), primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    count: Mapped[int] = mapped_column(BigInteger)
    odd: Mapped[int] = mapped_column(BigInteger)
    first_at: Mapped[float | None] = mapped_column(Double)
    at: Mapped[float | None] = mapped_column(Double)
    step: Mapped[int | None] = mapped_column(BigInteger)
    last: Mapped[float | None] = mapped_column(Double)
    low: Mapped[float | None] = mapped_column(Double)
    low_step: Mapped[int | None] = mapped_column(BigInteger)
    high: Mapped[float | None] = mapped_column(Double)
    high_step: Mapped[int | None] = mapped_column(BigInteger)
    by_time: Mapped[list[Any]]
    by_step: Mapped[list[Any]]


class JobMetricGap(Base):
    """What of a job's reports is not kept: bytes of its output that were passed over because it
    grew faster than it is read, and names beyond the most that are kept."""

    __tablename__ = "job_metric_gap"

    job_id: Mapped[int] = mapped_column(ForeignKey("job.id"), primary_key=True)
    skipped_bytes: Mapped[int] = mapped_column(BigInteger)
    names: Mapped[int]
    at: Mapped[datetime]
