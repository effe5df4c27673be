"""The tables of contribution. Nothing outside `store` imports this module.

A line and a version of the rules are never updated or deleted: a correction, or an end, is a new
line that replaces one. So a night's run can be worked out again at any later time.
"""

from datetime import date, datetime
from typing import Any

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, Text
from sqlalchemy.orm import Mapped, mapped_column

from gateway.store.models import Base


class ContributionLine(Base):
    """`amount` is millionths of the kind's unit; 0 takes the replaced line back.

    `replaces_id` is unique: of two people who correct one line at once, one is told so.
    """

    __tablename__ = "contribution_line"
    __table_args__ = (CheckConstraint("amount >= 0", name="amount_not_negative"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(unique=True)
    replaces_id: Mapped[int | None] = mapped_column(ForeignKey("contribution_line.id"), unique=True)
    group: Mapped[str] = mapped_column("group_name", index=True)
    kind: Mapped[str]
    amount: Mapped[int] = mapped_column(BigInteger)
    day: Mapped[date]
    ended_on: Mapped[date | None]
    note: Mapped[str] = mapped_column(Text)
    at: Mapped[datetime]
    person_id: Mapped[int | None] = mapped_column(ForeignKey("person.id"))


class ContributionRules(Base):
    """A version of core.contribution.Rules; the newest holds."""

    __tablename__ = "contribution_rules"

    id: Mapped[int] = mapped_column(primary_key=True)
    rules: Mapped[dict[str, Any]]
    at: Mapped[datetime]
    person_id: Mapped[int | None] = mapped_column(ForeignKey("person.id"))


class ContributionRun(Base):
    """One computation. `done_at` None: it was begun, and is done again under the same key.

    `change_id` is the change that it proposed; None when nothing differs.
    """

    __tablename__ = "contribution_run"

    id: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(unique=True)
    day: Mapped[date]
    at: Mapped[datetime]
    done_at: Mapped[datetime | None]
    version: Mapped[int] = mapped_column(ForeignKey("contribution_rules.id"))
    groups: Mapped[int]
    differing: Mapped[int]
    change_id: Mapped[int | None]
    error_code: Mapped[str | None]
    person_id: Mapped[int | None] = mapped_column(ForeignKey("person.id"))
