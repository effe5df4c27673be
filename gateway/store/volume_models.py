"""The tables of volumes. Nothing outside `store` imports this module."""

from datetime import date, datetime

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    ForeignKey,
    Index,
    Text,
    UniqueConstraint,
    false,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from gateway.store.models import Base


class Area(Base):
    """A place for volumes as the broker told of it last; bytes None and `problem`: not known."""

    __tablename__ = "volume_area"

    name: Mapped[str] = mapped_column(primary_key=True)
    path: Mapped[str] = mapped_column(Text)
    provider: Mapped[str]
    limits: Mapped[bool]
    total_bytes: Mapped[int | None] = mapped_column(BigInteger)
    free_bytes: Mapped[int | None] = mapped_column(BigInteger)
    problem: Mapped[str | None]
    read_at: Mapped[datetime]
    gone_at: Mapped[datetime | None]  # the broker has it no more


class Volume(Base):
    """A group's folder. Figures are those of `read_at`, in bytes; `problem` (a code): why there
    are none, or what is not as the portal left it. `wanted_bytes`: the limit that the portal
    set last, so that another one is seen to be somebody else's doing."""

    __tablename__ = "volume"
    __table_args__ = (
        UniqueConstraint("area", "name"),
        CheckConstraint("state in ('making','there','retired')", name="state_known"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    area: Mapped[str]
    name: Mapped[str]
    group: Mapped[str] = mapped_column("group_name", index=True)
    owner: Mapped[str]  # the Unix group
    path: Mapped[str] = mapped_column(Text)
    state: Mapped[str]
    used_bytes: Mapped[int | None] = mapped_column(BigInteger)
    limit_bytes: Mapped[int | None] = mapped_column(BigInteger)
    wanted_bytes: Mapped[int | None] = mapped_column(BigInteger)
    problem: Mapped[str | None]
    read_at: Mapped[datetime | None]
    created_at: Mapped[datetime]
    retired_at: Mapped[datetime | None]
    person_id: Mapped[int | None] = mapped_column(ForeignKey("person.id"))


class StrangeFolder(Base):
    """What lies in an area and is no volume of the portal, as read last."""

    __tablename__ = "volume_stranger"

    area: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    owner: Mapped[str]
    used_bytes: Mapped[int | None] = mapped_column(BigInteger)
    limit_bytes: Mapped[int | None] = mapped_column(BigInteger)


class VolumeDay(Base):
    """The last figures of a day of the site's zone, in bytes; None: not known."""

    __tablename__ = "volume_day"

    volume_id: Mapped[int] = mapped_column(ForeignKey("volume.id"), primary_key=True)
    day: Mapped[date] = mapped_column(primary_key=True)
    used_bytes: Mapped[int | None] = mapped_column(BigInteger)
    limit_bytes: Mapped[int | None] = mapped_column(BigInteger)


class VolumeRequest(Base):
    """Another limit that somebody asked for, or set: the audit of a volume's limits.

    `before_bytes` and `after_bytes` are what the file system had at the write, and what was read
    back. One of a volume is open or agreed at a time.
    """

    __tablename__ = "volume_request"
    __table_args__ = (
        CheckConstraint(
            "state in ('open','agreed','applied','refused','failed','withdrawn')",
            name="state_known",
        ),
        Index(
            "ix_volume_request_open",
            "volume_id",
            unique=True,
            sqlite_where=text("state in ('open','agreed')"),
            postgresql_where=text("state in ('open','agreed')"),
        ),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    volume_id: Mapped[int] = mapped_column(ForeignKey("volume.id"), index=True)
    wanted_bytes: Mapped[int | None] = mapped_column(BigInteger)  # None: no limit
    state: Mapped[str]
    text: Mapped[str] = mapped_column(Text)
    at: Mapped[datetime]
    person_id: Mapped[int | None] = mapped_column(ForeignKey("person.id"))
    answer: Mapped[str] = mapped_column(Text)
    decided_at: Mapped[datetime | None]
    decided_by: Mapped[int | None] = mapped_column(ForeignKey("person.id"))
    before_bytes: Mapped[int | None] = mapped_column(BigInteger)
    after_bytes: Mapped[int | None] = mapped_column(BigInteger)
    tried_at: Mapped[datetime | None]
    done_at: Mapped[datetime | None]
    code: Mapped[str | None]  # why it failed, or why it is not known yet
    below_use: Mapped[bool] = mapped_column(server_default=false())  # that was meant


class VolumeCap(Base):
    """Up to what sum of limits a group's leaders may agree by themselves."""

    __tablename__ = "volume_cap"

    group: Mapped[str] = mapped_column("group_name", primary_key=True)
    most_bytes: Mapped[int] = mapped_column(BigInteger)


class VolumePrice(Base):
    """Of a GB and month, from `starts` on. Rows are added, never changed. `area` empty: of all."""

    __tablename__ = "volume_price"
    __table_args__ = (
        UniqueConstraint("area", "starts"),
        CheckConstraint("per_gb_month >= 0", name="not_negative"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    area: Mapped[str]
    per_gb_month: Mapped[int] = mapped_column(BigInteger)
    starts: Mapped[datetime]
    set_at: Mapped[datetime]
    person_id: Mapped[int | None] = mapped_column(ForeignKey("person.id"))


class VolumeCharge(Base):
    """What a month (2026-11) of a volume cost, once. `gb_days` in thousandths."""

    __tablename__ = "volume_charge"

    volume_id: Mapped[int] = mapped_column(ForeignKey("volume.id"), primary_key=True)
    month: Mapped[str] = mapped_column(primary_key=True)
    gb_days: Mapped[int] = mapped_column(BigInteger)
    amount: Mapped[int] = mapped_column(BigInteger)
    at: Mapped[datetime]
