"""The price lists, terms of QoS and package offers. Rows are added, never changed."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from gateway.core.credits import Credits
from gateway.core.pricing import Preempted, Price, PriceList, QosTerms
from gateway.store import money_models as mm
from gateway.store.models import table_of
from gateway.store.upsert import insert_if_new

SITE = "site"


@dataclass(frozen=True, slots=True)
class OfferRow:
    """A package that is sold: card-hours of `resource` at `per_hour`, for `days`."""

    id: int
    name: str
    resource: str
    per_hour: int
    days: int
    starts: datetime
    ends: datetime | None


def load(session: Session, name: str = SITE) -> PriceList:
    """Every row of the list, also those to come; the terms of QoS belong to the site's own."""
    prices = session.execute(
        select(mm.Price.resource, mm.Price.per_hour, mm.Price.starts, mm.Price.set_at)
        .where(mm.Price.list_name == name)
        .order_by(mm.Price.resource, mm.Price.starts)
    )
    terms = session.execute(
        select(
            mm.QosTerms.qos,
            mm.QosTerms.factor_millionths,
            mm.QosTerms.preempted,
            mm.QosTerms.starts,
            mm.QosTerms.set_at,
        ).order_by(mm.QosTerms.qos, mm.QosTerms.starts)
    )
    return PriceList(
        tuple(Price(row[0], Credits(row[1]), row[2], row[3]) for row in prices),
        tuple(QosTerms(row[0], row[1], Preempted(row[2]), row[3], row[4]) for row in terms),
    )


def free_when_preempted(session: Session) -> frozenset[str]:
    """The QoS whose newest terms give a preempted run back."""
    rows = session.execute(
        select(mm.QosTerms.qos, mm.QosTerms.preempted).order_by(mm.QosTerms.starts)
    )
    newest = {qos: Preempted(preempted) for qos, preempted in rows}
    return frozenset(qos for qos, terms in newest.items() if terms is Preempted.FREE)


def lists(session: Session) -> list[str]:
    return list(session.scalars(select(mm.Price.list_name).distinct().order_by(mm.Price.list_name)))


def add_price(
    session: Session,
    *,
    list_name: str,
    resource: str,
    per_hour: int,
    starts: datetime,
    now: datetime,
    person_id: int | None,
) -> bool:
    """False when the list has a row for this resource and moment."""
    row = {
        "list_name": list_name,
        "resource": resource,
        "per_hour": per_hour,
        "starts": starts,
        "set_at": now,
        "person_id": person_id,
    }
    return insert_if_new(session, table_of(mm.Price), row) is not None


def add_terms(
    session: Session,
    *,
    qos: str,
    factor_millionths: int,
    preempted: str,
    starts: datetime,
    now: datetime,
    person_id: int | None,
) -> bool:
    """False when the QoS has terms for this moment."""
    row = {
        "qos": qos,
        "factor_millionths": factor_millionths,
        "preempted": preempted,
        "starts": starts,
        "set_at": now,
        "person_id": person_id,
    }
    return insert_if_new(session, table_of(mm.QosTerms), row) is not None


def add_offer(
    session: Session,
    *,
    name: str,
    resource: str,
    per_hour: int,
    days: int,
    starts: datetime,
    person_id: int | None,
) -> int | None:
    """None when the name is taken."""
    row = {
        "name": name,
        "resource": resource,
        "per_hour": per_hour,
        "days": days,
        "starts": starts,
        "ends": None,
        "person_id": person_id,
    }
    return insert_if_new(session, table_of(mm.PackageOffer), row)


def end_offer(session: Session, offer_id: int, *, now: datetime) -> bool:
    """Sold no more; packages that were bought stay. False when there is no such offer."""
    if session.get(mm.PackageOffer, offer_id) is None:
        return False
    session.execute(
        update(mm.PackageOffer)
        .where(mm.PackageOffer.id == offer_id, mm.PackageOffer.ends.is_(None))
        .values(ends=now)
    )
    return True


def offers(session: Session, *, now: datetime) -> list[OfferRow]:
    """What is sold now."""
    columns = [getattr(mm.PackageOffer, name) for name in OfferRow.__slots__]
    query = select(*columns).where(mm.PackageOffer.starts <= now).order_by(mm.PackageOffer.name)
    return [
        row
        for row in (OfferRow(*found) for found in session.execute(query))
        if row.ends is None or now < row.ends
    ]
