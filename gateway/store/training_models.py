"""The tables of training runs: what people's scripts told of themselves. Nothing outside `store`
imports this module.

All of it was read from files of a job's owner (docs/engineering/training.md): nothing here counts
for money. Seconds are those since 1970, UTC, as in the files.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, CheckConstraint, Double, ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from gateway.store.models import Base


class TrainingFollow(Base):
    """A job whose run folder is read. `due_at` None: it was read to its end."""

    __tablename__ = "training_follow"

    job_id: Mapped[int] = mapped_column(ForeignKey("job.id"), primary_key=True)
    due_at: Mapped[datetime | None] = mapped_column(index=True)
    quiet: Mapped[int] = mapped_column(default=0)  # turns since anything new was found
    turn: Mapped[int] = mapped_column(default=0)
    metrics_from: Mapped[float | None] = mapped_column(Double)  # the first metric's second
    heard_at: Mapped[datetime | None]  # when anything new was found last


class TrainingCursor(Base):
    """How far a file was read; moves in the transaction that keeps what was read.

    `last_at` is the latest line's second. `floor_at`: the file became shorter, so it is read from
    its beginning, and lines up to this second are known already.
    """

    __tablename__ = "training_cursor"

    job_id: Mapped[int] = mapped_column(ForeignKey("job.id"), primary_key=True)
    file: Mapped[str] = mapped_column(primary_key=True)  # within the run folder
    offset: Mapped[int] = mapped_column(BigInteger)
    last_at: Mapped[float | None] = mapped_column(Double)
    floor_at: Mapped[float | None] = mapped_column(Double)


class TrainingEvent(Base):
    """A line of events.jsonl; `facts` are those of core.training.lines."""

    __tablename__ = "training_event"
    __table_args__ = (Index(None, "job_id", "at"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    job_id: Mapped[int] = mapped_column(ForeignKey("job.id"))
    at: Mapped[float] = mapped_column(Double)
    restart: Mapped[int]
    kind: Mapped[str]
    step: Mapped[int | None] = mapped_column(BigInteger)
    facts: Mapped[dict[str, Any]]


class TrainingPoint(Base):
    """Lines of metrics.jsonl in sums: core.training.sums.Point."""

    __tablename__ = "training_point"

    job_id: Mapped[int] = mapped_column(ForeignKey("job.id"), primary_key=True)
    restart: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    lines: Mapped[int] = mapped_column(BigInteger)
    first_at: Mapped[float] = mapped_column(Double)
    last_at: Mapped[float] = mapped_column(Double)
    first_step: Mapped[int] = mapped_column(BigInteger)
    last_step: Mapped[int] = mapped_column(BigInteger)
    loss: Mapped[float] = mapped_column(Double)
    losses: Mapped[int] = mapped_column(BigInteger)
    tokens: Mapped[int] = mapped_column(BigInteger)
    samples: Mapped[int] = mapped_column(BigInteger)
    seconds: Mapped[float] = mapped_column(Double)
    timed: Mapped[int] = mapped_column(BigInteger)
    peak_bytes: Mapped[int] = mapped_column(BigInteger)


class TrainingMinute(Base):
    """A node's cards in a minute: core.training.sums.Minute.

    Beside `cards`, what charts ask of many minutes: the use of all, of the least and of the most
    used card in percent, and the most memory of one card in bytes. The index holds just those, so
    that a chart of a week on many nodes does not read the cards.
    """

    __tablename__ = "training_minute"
    __table_args__ = (
        Index("ix_training_minute_sums", "job_id", "at", "util", "util_low", "util_high", "mem"),
    )

    job_id: Mapped[int] = mapped_column(ForeignKey("job.id"), primary_key=True)
    node: Mapped[str] = mapped_column(primary_key=True)
    at: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    last_at: Mapped[float] = mapped_column(Double)
    procs: Mapped[int | None] = mapped_column(BigInteger)
    expected: Mapped[int | None] = mapped_column(BigInteger)
    util: Mapped[float | None] = mapped_column(Double)
    util_low: Mapped[float | None] = mapped_column(Double)
    util_high: Mapped[float | None] = mapped_column(Double)
    mem: Mapped[int | None] = mapped_column(BigInteger)
    cards: Mapped[list[Any]]


class GroupRule(Base):
    """What a group wants of its training runs, and who said so. No row: `nothing`."""

    __tablename__ = "group_rule"
    __table_args__ = (
        CheckConstraint("on_stall in ('nothing','hold','requeue')", name="on_stall_known"),
    )

    group: Mapped[str] = mapped_column("group_name", primary_key=True)
    on_stall: Mapped[str]
    at: Mapped[datetime]
    person_id: Mapped[int | None] = mapped_column(ForeignKey("person.id"))
