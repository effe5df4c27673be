"""The tables of money. Nothing outside `store` imports this module.

Amounts are whole millionths of the site's currency. An entry is never updated or deleted: a
mistake gets a second line. What is summed up beside the entries (`Pot.left`, `Hold.amount`,
`Charge.amount`, `Refund.amount`) changes only in the transaction that adds the entries, and
`sluice ledger verify` compares.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    ForeignKey,
    Index,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from gateway.store.models import Base


class Price(Base):
    """Per card-hour, or per CPU-hour for the resource `cpu`, from `starts` until a later row.

    `list_name` is `site` for what is charged; other lists are for comparison only.
    """

    __tablename__ = "price"
    __table_args__ = (
        UniqueConstraint("list_name", "resource", "starts"),
        CheckConstraint("per_hour >= 0", name="per_hour_not_negative"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    list_name: Mapped[str]
    resource: Mapped[str]
    per_hour: Mapped[int] = mapped_column(BigInteger)
    starts: Mapped[datetime]
    set_at: Mapped[datetime]
    person_id: Mapped[int | None] = mapped_column(ForeignKey("person.id"))


class QosTerms(Base):
    """A QoS's factor (millionths), and whether a run that was preempted is paid."""

    __tablename__ = "qos_terms"
    __table_args__ = (
        UniqueConstraint("qos", "starts"),
        CheckConstraint("factor_millionths >= 0", name="factor_not_negative"),
        CheckConstraint("preempted in ('pay','free')", name="preempted_known"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    qos: Mapped[str]
    factor_millionths: Mapped[int] = mapped_column(BigInteger)
    preempted: Mapped[str]
    starts: Mapped[datetime]
    set_at: Mapped[datetime]
    person_id: Mapped[int | None] = mapped_column(ForeignKey("person.id"))


class PackageOffer(Base):
    """Card-hours of one type at a discount, prepaid, for some days. `ends` None: still sold."""

    __tablename__ = "package_offer"
    __table_args__ = (CheckConstraint("days > 0", name="days_positive"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    resource: Mapped[str]
    per_hour: Mapped[int] = mapped_column(BigInteger)
    days: Mapped[int]
    starts: Mapped[datetime]
    ends: Mapped[datetime | None]
    person_id: Mapped[int | None] = mapped_column(ForeignKey("person.id"))


class Account(Base):
    """A group's rules. Its row is locked by whoever writes the group's entries."""

    __tablename__ = "account"
    __table_args__ = (
        CheckConstraint("overdraft >= 0", name="overdraft_not_negative"),
        CheckConstraint("at_zero in ('finish','hold','stop')", name="at_zero_known"),
    )

    group: Mapped[str] = mapped_column("group_name", primary_key=True)
    at_zero: Mapped[str] = mapped_column(default="hold")
    overdraft: Mapped[int] = mapped_column(BigInteger, default=0)
    warning_minutes: Mapped[int] = mapped_column(default=30)
    # The worst case of open jobs that no hold covers, as the gate last counted it.
    committed: Mapped[int] = mapped_column(BigInteger, default=0)
    committed_at: Mapped[datetime | None]


class Campaign(Base):
    """A code that gives a grant to each group that redeems it, while `stock` lasts."""

    __tablename__ = "campaign"
    __table_args__ = (CheckConstraint("taken <= stock", name="stock_not_exceeded"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    code: Mapped[str] = mapped_column(unique=True)
    amount: Mapped[int] = mapped_column(BigInteger)
    days: Mapped[int]
    stock: Mapped[int]
    taken: Mapped[int] = mapped_column(default=0)
    starts: Mapped[datetime]
    ends: Mapped[datetime | None]
    person_id: Mapped[int | None] = mapped_column(ForeignKey("person.id"))


class Pot(Base):
    """A part of a group's credit. `left` is the sum of its entries.

    `key` makes a repeat harmless: `balance:GROUP`, or the idempotency key of the grant.
    """

    __tablename__ = "pot"
    __table_args__ = (
        CheckConstraint("kind in ('balance','grant','package','loan')", name="kind_known"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    group: Mapped[str] = mapped_column("group_name", index=True)
    kind: Mapped[str]
    key: Mapped[str] = mapped_column(unique=True)
    reason: Mapped[str]
    note: Mapped[str] = mapped_column(Text)
    resource: Mapped[str | None]  # packages: the GPU type
    per_hour: Mapped[int | None] = mapped_column(BigInteger)  # packages: what a card-hour draws
    starts: Mapped[datetime]
    expires: Mapped[datetime | None] = mapped_column(index=True)
    carry_over_millionths: Mapped[int]  # the share of the rest that a new grant takes over
    left: Mapped[int] = mapped_column(BigInteger)
    campaign_id: Mapped[int | None] = mapped_column(ForeignKey("campaign.id"))
    created_at: Mapped[datetime]
    person_id: Mapped[int | None] = mapped_column(ForeignKey("person.id"))


class Hold(Base):
    """Credit kept back for a submission's worst case. `amount` is what is held now."""

    __tablename__ = "hold"
    __table_args__ = (
        CheckConstraint("amount >= 0", name="amount_not_negative"),
        Index(None, "group_name", "closed_at"),
        Index(None, "closed_at"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    submission_id: Mapped[int] = mapped_column(ForeignKey("submission.id"), unique=True)
    group: Mapped[str] = mapped_column("group_name")
    user: Mapped[str]
    tasks: Mapped[int]
    per_task: Mapped[int] = mapped_column(BigInteger)  # the worst case of one task
    amount: Mapped[int] = mapped_column(BigInteger)
    opened_at: Mapped[datetime]
    closed_at: Mapped[datetime | None]


class Charge(Base):
    """What one run cost, or why nobody can say yet. One row a run, whatever is repeated.

    States: posted; review (nothing is charged yet; `pending` is the estimate, where there is
    one); waived (an administrator decided that nothing is charged).
    """

    __tablename__ = "charge"
    __table_args__ = (
        CheckConstraint("state in ('posted','review','waived')", name="state_known"),
        CheckConstraint("state = 'posted' or amount = 0", name="only_posted_costs"),
        Index(None, "group_name", "at"),
        Index(None, "state", "at"),
        Index(
            "ix_charge_doubt",
            "at",
            sqlite_where=text("reason is not null"),
            postgresql_where=text("reason is not null"),
        ),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    run_id: Mapped[int] = mapped_column(ForeignKey("run.id"), unique=True)
    group: Mapped[str] = mapped_column("group_name")
    user: Mapped[str]
    state: Mapped[str]
    reason: Mapped[str | None]
    amount: Mapped[int] = mapped_column(BigInteger)
    card_seconds: Mapped[int] = mapped_column(BigInteger)
    items: Mapped[list[Any]]  # core.pots.Line as dictionaries
    pending: Mapped[int | None] = mapped_column(BigInteger)
    version: Mapped[int]  # 1, then one more for each correction
    at: Mapped[datetime]
    decision: Mapped[dict[str, Any] | None]  # an administrator's, from the review
    decided_by: Mapped[int | None] = mapped_column(ForeignKey("person.id"))


class Refund(Base):
    """Credit given back for a charge, once, with the evidence. Undone, it does not come again."""

    __tablename__ = "refund"

    id: Mapped[int] = mapped_column(primary_key=True)
    charge_id: Mapped[int] = mapped_column(ForeignKey("charge.id"), unique=True)
    reason: Mapped[str]
    evidence: Mapped[dict[str, Any]]
    amount: Mapped[int] = mapped_column(BigInteger)
    at: Mapped[datetime]
    person_id: Mapped[int | None] = mapped_column(ForeignKey("person.id"))
    undone_at: Mapped[datetime | None]
    undone_by: Mapped[int | None] = mapped_column(ForeignKey("person.id"))


class Loan(Base):
    """Credit that one group lent another. What was used is owed until it is returned."""

    __tablename__ = "loan"
    __table_args__ = (CheckConstraint("returned <= amount", name="not_more_than_lent"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(unique=True)
    lender: Mapped[str] = mapped_column(index=True)
    borrower: Mapped[str] = mapped_column(index=True)
    amount: Mapped[int] = mapped_column(BigInteger)
    returned: Mapped[int] = mapped_column(BigInteger)
    pot_id: Mapped[int] = mapped_column(ForeignKey("pot.id"))
    at: Mapped[datetime]
    due: Mapped[datetime | None]
    person_id: Mapped[int | None] = mapped_column(ForeignKey("person.id"))


class Entry(Base):
    """A line of the ledger. `key` and pot together are unique: a repeat adds nothing."""

    __tablename__ = "entry"
    __table_args__ = (
        UniqueConstraint("key", "pot_id"),
        CheckConstraint("amount <> 0", name="amount_not_zero"),
        Index(None, "group_name", "at"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[datetime]
    pot_id: Mapped[int] = mapped_column(ForeignKey("pot.id"), index=True)
    group: Mapped[str] = mapped_column("group_name")
    kind: Mapped[str]  # core.ledger.EntryKind
    amount: Mapped[int] = mapped_column(BigInteger)
    key: Mapped[str]
    hold_id: Mapped[int | None] = mapped_column(ForeignKey("hold.id"), index=True)
    charge_id: Mapped[int | None] = mapped_column(ForeignKey("charge.id"), index=True)
    person_id: Mapped[int | None] = mapped_column(ForeignKey("person.id"))
    note: Mapped[str | None] = mapped_column(Text)


class MemberCap(Base):
    """The most that one member may spend in a calendar month, holds included."""

    __tablename__ = "member_cap"

    group: Mapped[str] = mapped_column("group_name", primary_key=True)
    user: Mapped[str] = mapped_column(primary_key=True)
    per_month: Mapped[int] = mapped_column(BigInteger)


class Budget(Base):
    """A plan with dates. Card-hours come from the charges, other categories by hand."""

    __tablename__ = "budget"

    id: Mapped[int] = mapped_column(primary_key=True)
    group: Mapped[str] = mapped_column("group_name", index=True)
    name: Mapped[str]
    amount: Mapped[int] = mapped_column(BigInteger)
    starts: Mapped[datetime]
    ends: Mapped[datetime]
    approved_until: Mapped[int]  # percent up to which a leader let jobs go on
    created_at: Mapped[datetime]
    person_id: Mapped[int | None] = mapped_column(ForeignKey("person.id"))


class BudgetLine(Base):
    """Something that was paid outside the ledger; a negative amount takes one back."""

    __tablename__ = "budget_line"
    __table_args__ = (
        CheckConstraint(
            "category in ('card_hours','storage','data_work','other')", name="category_known"
        ),
        CheckConstraint("amount <> 0", name="amount_not_zero"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    budget_id: Mapped[int] = mapped_column(ForeignKey("budget.id"), index=True)
    category: Mapped[str]
    amount: Mapped[int] = mapped_column(BigInteger)
    note: Mapped[str] = mapped_column(Text)
    at: Mapped[datetime]
    person_id: Mapped[int | None] = mapped_column(ForeignKey("person.id"))


class BudgetThreshold(Base):
    """What happens at some percent of a budget, and when it was reached."""

    __tablename__ = "budget_threshold"
    __table_args__ = (
        CheckConstraint("action in ('notify','stop','approve')", name="action_known"),
    )

    budget_id: Mapped[int] = mapped_column(ForeignKey("budget.id"), primary_key=True)
    percent: Mapped[int] = mapped_column(primary_key=True)
    action: Mapped[str]
    reached_at: Mapped[datetime | None]


class Gate(Base):
    """What the portal wants Slurm to enforce for a group or member, and what Slurm has."""

    __tablename__ = "gate"

    group: Mapped[str] = mapped_column("group_name", primary_key=True)
    user: Mapped[str] = mapped_column(primary_key=True)  # empty: the whole group
    closed: Mapped[bool]
    reason: Mapped[str]
    wanted: Mapped[dict[str, Any]]
    before: Mapped[dict[str, Any]]  # the site's own limits, put back when it opens
    in_slurm: Mapped[dict[str, Any] | None]
    changed_at: Mapped[datetime]
    confirmed_at: Mapped[datetime | None]
    error_code: Mapped[str | None]


class GateHeldJob(Base):
    """A waiting job that the gate holds: its group could not pay for it."""

    __tablename__ = "gate_held_job"

    job_id: Mapped[int] = mapped_column(ForeignKey("job.id"), primary_key=True)
    at: Mapped[datetime]
    reason: Mapped[str]


class Notice(Base):
    """Something that a group or the administrators should know. `key`: told once."""

    __tablename__ = "notice"
    __table_args__ = (Index(None, "group_name", "at"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(unique=True)
    group: Mapped[str | None] = mapped_column("group_name")
    kind: Mapped[str]
    facts: Mapped[dict[str, Any]]
    at: Mapped[datetime]
    gone_at: Mapped[datetime | None]


class ClosedMonth(Base):
    """A month of the site's zone whose ledger was compared with Slurm's accounting."""

    __tablename__ = "closed_month"

    month: Mapped[str] = mapped_column(primary_key=True)  # 2026-11
    at: Mapped[datetime]
    totals: Mapped[dict[str, Any]]
    differences: Mapped[list[Any]]
    person_id: Mapped[int | None] = mapped_column(ForeignKey("person.id"))
