"""Small acts of administrators that end something: an offer, a row that was dealt with."""

from datetime import datetime

from gateway.errors import NotFound
from gateway.store import prices, reviews
from gateway.store.uow import Begin


def end_offer(offer_id: int, *, begin: Begin, now: datetime) -> None:
    """Sold no more from now on; packages that were bought stay. Safe to repeat. NotFound."""
    with begin() as session:
        if not prices.end_offer(session, offer_id, now=now):
            raise NotFound("package offer")


def deal_with(row_id: int, *, begin: Begin, now: datetime) -> None:
    """A person has dealt with an accounting row: it leaves the list, and stays in the table."""
    with begin() as session:
        if not reviews.held_row(session, row_id):
            raise NotFound("held row")
        reviews.settle_held_row(session, row_id, now=now)
