"""Campaigns, loans and caps: rows beside the ledger that its entries belong to."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import or_, select, update
from sqlalchemy.orm import Session

from gateway.store import money_models as mm
from gateway.store.models import table_of
from gateway.store.upsert import insert_if_new


@dataclass(frozen=True, slots=True)
class CampaignRow:
    id: int
    code: str
    amount: int
    days: int
    stock: int
    taken: int
    starts: datetime
    ends: datetime | None


@dataclass(frozen=True, slots=True)
class LoanRow:
    """`amount` less `returned` is still owed."""

    id: int
    key: str
    lender: str
    borrower: str
    amount: int
    returned: int
    pot_id: int
    at: datetime
    due: datetime | None

    @property
    def owed(self) -> int:
        return self.amount - self.returned


@dataclass(frozen=True, slots=True)
class ExpiredPot:
    """A pot past its end: what is left lapses, but for the share that is carried over."""

    id: int
    group: str
    kind: str
    key: str
    left: int
    starts: datetime
    expires: datetime
    carry_over_millionths: int


def add_campaign(session: Session, row: dict[str, Any]) -> int | None:
    """None when the code is taken."""
    return insert_if_new(session, table_of(mm.Campaign), row)


def campaigns(session: Session) -> list[CampaignRow]:
    return [CampaignRow(*row) for row in session.execute(_campaigns().order_by(mm.Campaign.id))]


def campaign(session: Session, code: str) -> CampaignRow | None:
    found = session.execute(_campaigns().where(mm.Campaign.code == code)).one_or_none()
    return CampaignRow(*found) if found else None


def take_one(session: Session, campaign_id: int) -> bool:
    """One off the stock; False when none is left, whoever asks at the same time."""
    statement = (
        update(mm.Campaign)
        .where(mm.Campaign.id == campaign_id, mm.Campaign.taken < mm.Campaign.stock)
        .values(taken=mm.Campaign.taken + 1)
        .execution_options(synchronize_session=False)
    )
    return bool(getattr(session.execute(statement), "rowcount", 0))


def add_loan(session: Session, row: dict[str, Any]) -> int | None:
    return insert_if_new(session, table_of(mm.Loan), row)


def loan(session: Session, loan_id: int) -> LoanRow | None:
    found = session.execute(_loans().where(mm.Loan.id == loan_id)).one_or_none()
    return LoanRow(*found) if found else None


def loan_by_key(session: Session, key: str) -> LoanRow | None:
    found = session.execute(_loans().where(mm.Loan.key == key)).one_or_none()
    return LoanRow(*found) if found else None


def loan_of_pot(session: Session, pot_id: int) -> LoanRow | None:
    found = session.execute(_loans().where(mm.Loan.pot_id == pot_id)).one_or_none()
    return LoanRow(*found) if found else None


def loans_of(session: Session, group: str) -> list[LoanRow]:
    """Given and taken, newest first."""
    either = or_(mm.Loan.lender == group, mm.Loan.borrower == group)
    return [
        LoanRow(*r) for r in session.execute(_loans().where(either).order_by(mm.Loan.id.desc()))
    ]


def returned(session: Session, loan_id: int, amount: int) -> None:
    session.execute(
        update(mm.Loan)
        .where(mm.Loan.id == loan_id)
        .values(returned=mm.Loan.returned + amount)
        .execution_options(synchronize_session=False)
    )


def expired_pot(session: Session, pot_id: int) -> ExpiredPot | None:
    columns = [getattr(mm.Pot, name) for name in ExpiredPot.__slots__]
    found = session.execute(select(*columns).where(mm.Pot.id == pot_id)).one_or_none()
    return ExpiredPot(*found) if found else None


def set_cap(session: Session, group: str, user: str, per_month: int | None) -> None:
    """None takes the cap away."""
    row = session.get(mm.MemberCap, (group, user))
    if per_month is None:
        if row is not None:
            session.delete(row)
        return
    if row is None:
        session.add(mm.MemberCap(group=group, user=user, per_month=per_month))
    else:
        row.per_month = per_month


def caps(session: Session, group: str) -> dict[str, int]:
    query = select(mm.MemberCap.user, mm.MemberCap.per_month).where(mm.MemberCap.group == group)
    return {row[0]: row[1] for row in session.execute(query)}


def _campaigns() -> Any:
    return select(*(getattr(mm.Campaign, name) for name in CampaignRow.__slots__))


def _loans() -> Any:
    return select(*(getattr(mm.Loan, name) for name in LoanRow.__slots__))
