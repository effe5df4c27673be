"""Price lists, terms of QoS, offers and campaigns with all their history, for the pages."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from gateway.store import money_models as mm
from gateway.store.models import Person


@dataclass(frozen=True, slots=True)
class PriceRow:
    id: int
    list_name: str
    resource: str
    per_hour: int
    starts: datetime
    set_at: datetime
    by: str | None  # the login of who set it


@dataclass(frozen=True, slots=True)
class TermsRow:
    id: int
    qos: str
    factor_millionths: int
    preempted: str
    starts: datetime
    set_at: datetime
    by: str | None


@dataclass(frozen=True, slots=True)
class OfferLine:
    """`sold` is how many packages groups bought of it."""

    id: int
    name: str
    resource: str
    per_hour: int
    days: int
    starts: datetime
    ends: datetime | None
    sold: int


def price_rows(session: Session) -> list[PriceRow]:
    """Every row of every list, newest start first."""
    price = mm.Price
    query = (
        select(
            price.id,
            price.list_name,
            price.resource,
            price.per_hour,
            price.starts,
            price.set_at,
            Person.login,
        )
        .outerjoin(Person, Person.id == price.person_id)
        .order_by(price.resource, price.starts.desc())
    )
    return [PriceRow(*row) for row in session.execute(query)]


def terms_rows(session: Session) -> list[TermsRow]:
    terms = mm.QosTerms
    query = (
        select(
            terms.id,
            terms.qos,
            terms.factor_millionths,
            terms.preempted,
            terms.starts,
            terms.set_at,
            Person.login,
        )
        .outerjoin(Person, Person.id == terms.person_id)
        .order_by(terms.qos, terms.starts.desc())
    )
    return [TermsRow(*row) for row in session.execute(query)]


def offer_lines(session: Session) -> list[OfferLine]:
    """All offers, those that are sold now first."""
    offer = mm.PackageOffer
    sold = (
        select(func.count())
        .where(mm.Pot.kind == "package", mm.Pot.reason == offer.name)
        .correlate(offer)
        .scalar_subquery()
    )
    query = select(
        offer.id,
        offer.name,
        offer.resource,
        offer.per_hour,
        offer.days,
        offer.starts,
        offer.ends,
        sold,
    ).order_by(offer.ends.is_not(None), offer.name)
    return [OfferLine(*row) for row in session.execute(query)]
