"""The tables of accounts, priorities and reservations as Slurm has them now, and of who shall be
in which group. Nothing outside `store` imports this module."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from gateway.store.models import Base

_OPEN = text("state = 'pending'")


class AccountNow(Base):
    """The accounts as the last poll saw them; replaced whole."""

    __tablename__ = "account_now"

    name: Mapped[str] = mapped_column(primary_key=True)
    facts: Mapped[dict[str, Any]]  # wire Account


class ReservationNow(Base):
    """The reservations as the last poll saw them; replaced whole."""

    __tablename__ = "reservation_now"

    name: Mapped[str] = mapped_column(primary_key=True)
    facts: Mapped[dict[str, Any]]  # wire Reservation


class FairShareNow(Base):
    """The lines of sshare that are of accounts, as the last poll saw them; replaced whole."""

    __tablename__ = "fair_share_now"

    id: Mapped[int] = mapped_column(primary_key=True)
    account: Mapped[str] = mapped_column(index=True)
    facts: Mapped[dict[str, Any]]  # wire FairShare


class PriorityNow(Base):
    """Points of a waiting job in one of its partitions, as the last poll saw them; replaced whole.

    Flat, and in the order of wire PriorityFactors: of 100,000 jobs nearly all change at each read.
    """

    __tablename__ = "priority_now"

    slurm_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    user: Mapped[str]
    account: Mapped[str]
    partition: Mapped[str] = mapped_column(primary_key=True)
    qos: Mapped[str]
    priority: Mapped[int] = mapped_column(BigInteger)
    site: Mapped[int] = mapped_column(BigInteger)
    age: Mapped[int] = mapped_column(BigInteger)
    association: Mapped[int] = mapped_column(BigInteger)
    fair_share: Mapped[int] = mapped_column(BigInteger)
    job_size: Mapped[int] = mapped_column(BigInteger)
    of_partition: Mapped[int] = mapped_column(BigInteger)
    of_qos: Mapped[int] = mapped_column(BigInteger)
    nice: Mapped[int] = mapped_column(BigInteger)
    tres: Mapped[str]


class PriorityWeightsNow(Base):
    """One row: the weights of Slurm's priority."""

    __tablename__ = "priority_weights_now"

    name: Mapped[str] = mapped_column(primary_key=True)
    facts: Mapped[dict[str, Any]]  # wire PriorityWeights


class MembershipChange(Base):
    """What somebody wants of a person's place in a group, and how far it has come.

    Written before Slurm is asked, so that what was half done is carried on. `closed_at`: since then
    Slurm refuses new jobs of one who leaves. `reopens`: a removal that is undone by this was such
    a closing. `code` is why it is still pending, or why Slurm refused it.
    """

    __tablename__ = "membership_change"
    __table_args__ = (
        CheckConstraint(
            "wanted in ('member','absent','leader','not_leader','default')", name="wanted_known"
        ),
        CheckConstraint("state in ('pending','done','refused','undone')", name="state_known"),
        Index(None, "group_name", "unix_user"),
        Index(
            "ix_membership_change_pending",
            "id",
            sqlite_where=_OPEN,
            postgresql_where=_OPEN,
        ),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    group: Mapped[str] = mapped_column("group_name")
    user: Mapped[str] = mapped_column("unix_user")
    wanted: Mapped[str]
    reopens: Mapped[bool] = mapped_column(default=False)
    state: Mapped[str] = mapped_column(default="pending")
    code: Mapped[str | None]
    at: Mapped[datetime]
    person_id: Mapped[int | None] = mapped_column(ForeignKey("person.id"))
    closed_at: Mapped[datetime | None]
    done_at: Mapped[datetime | None]
