"""The tables of what Slurm said of waiting jobs. Nothing outside `store` imports this module.

Seconds are whole ones since 1970, UTC, as `core.wait_causes` takes them.
"""

from sqlalchemy import BigInteger, ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from gateway.store.models import Base


class WaitReason(Base):
    """From `since` on a poll saw this reason, until the next row of the same wait or its end.

    `submit`: of the run that the job waits for; a requeue opens another wait. A row is written
    when the cause changes (core.wait_causes.cause_of), not at each poll. Kept as long as the job:
    the columnar history can be made anew at any time.
    """

    __tablename__ = "wait_reason"
    __table_args__ = ({"sqlite_with_rowid": False},)

    job_id: Mapped[int] = mapped_column(ForeignKey("job.id"), primary_key=True)
    submit: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    since: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    reason: Mapped[str | None]


class PollGap(Base):
    """From `since` to `until` no poll read this cluster's queue."""

    __tablename__ = "poll_gap"

    cluster: Mapped[str] = mapped_column(primary_key=True)
    since: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    until: Mapped[int] = mapped_column(BigInteger)
