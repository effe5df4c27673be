"""The tables of policy: changes, their items, and versions. Nothing outside `store` imports this
module.

`policy` columns hold core.qos.Qos or GroupPolicy, by the row's `kind` (qos, group), as the wire
dumps them. A version is never updated or deleted.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, CheckConstraint, ForeignKey, Index, Text, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from gateway.store.models import Base

_KIND = "kind in ('qos','group')"


class PolicyChange(Base):
    """A proposal and what became of it; `state`: core.policy_change.ChangeState.

    `about_id`: the change that this one undoes, or whose way back it is. `claimed_until`: a
    process works at it, or Slurm's silence is waited out.
    """

    __tablename__ = "policy_change"
    __table_args__ = (
        CheckConstraint(
            "state in ('proposed','approved','applying','unknown','applied','partly','refused',"
            "'withdrawn','ended')",
            name="state_known",
        ),
        Index(None, "state", "starts_at"),
        Index(
            "ix_policy_change_ends_at",
            "ends_at",
            sqlite_where=text("ends_at is not null"),
            postgresql_where=text("ends_at is not null"),
        ),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(unique=True)
    source: Mapped[str]
    state: Mapped[str]
    reason: Mapped[str] = mapped_column(Text)
    person_id: Mapped[int | None] = mapped_column(ForeignKey("person.id"))
    proposed_at: Mapped[datetime]
    needs_approval: Mapped[bool]
    approved_by: Mapped[int | None] = mapped_column(ForeignKey("person.id"))
    approved_at: Mapped[datetime | None]
    starts_at: Mapped[datetime | None]
    ends_at: Mapped[datetime | None]
    applied_by: Mapped[int | None] = mapped_column(ForeignKey("person.id"))
    begun_at: Mapped[datetime | None]
    settled_at: Mapped[datetime | None]
    withdrawn_by: Mapped[int | None] = mapped_column(ForeignKey("person.id"))
    withdrawn_at: Mapped[datetime | None]
    about_id: Mapped[int | None] = mapped_column(ForeignKey("policy_change.id"))
    claimed_until: Mapped[datetime | None]


class PolicyItem(Base):
    """One object of a change, before and after; `state`: core.policy_change.ItemState."""

    __tablename__ = "policy_item"
    __table_args__ = (
        UniqueConstraint("change_id", "place"),
        UniqueConstraint("change_id", "kind", "name"),
        CheckConstraint(_KIND, name="kind_known"),
        CheckConstraint("state in ('waiting','sent','done','half','refused')", name="state_known"),
        Index(None, "kind", "name", "change_id"),
        Index(
            "ix_policy_item_sent",
            "change_id",
            sqlite_where=text("state = 'sent'"),
            postgresql_where=text("state = 'sent'"),
        ),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    change_id: Mapped[int] = mapped_column(ForeignKey("policy_change.id"))
    place: Mapped[int]
    kind: Mapped[str]
    name: Mapped[str]
    before: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    after: Mapped[dict[str, Any]]
    retires: Mapped[bool | None]
    state: Mapped[str]
    sent_at: Mapped[datetime | None]
    tries: Mapped[int] = mapped_column(default=0)
    settled_at: Mapped[datetime | None]
    code: Mapped[str | None]
    found: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))


class PolicyVersion(Base):
    """What an object was from `at` on, and who made it so. `policy` null: Slurm has it no more."""

    __tablename__ = "policy_version"
    __table_args__ = (
        UniqueConstraint("kind", "name", "number"),
        CheckConstraint(_KIND, name="kind_known"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    kind: Mapped[str]
    name: Mapped[str]
    number: Mapped[int]
    policy: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    before: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    retired: Mapped[bool]
    source: Mapped[str]
    change_id: Mapped[int | None] = mapped_column(ForeignKey("policy_change.id"), index=True)
    person_id: Mapped[int | None] = mapped_column(ForeignKey("person.id"))
    at: Mapped[datetime]


class PolicyObject(Base):
    """The newest version of each object: looked at by each page, and locked by who adds one."""

    __tablename__ = "policy_object"
    __table_args__ = (CheckConstraint(_KIND, name="kind_known"),)

    kind: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    number: Mapped[int]
    retired: Mapped[bool]
    version_id: Mapped[int | None] = mapped_column(ForeignKey("policy_version.id"))
