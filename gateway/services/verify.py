"""Prove the ledger: every sum equals its entries, one charge a run, no hold left behind."""

from dataclasses import dataclass

from gateway.store.queries import verify as reads
from gateway.store.queries.verify import Broken
from gateway.store.uow import Begin


@dataclass(frozen=True, slots=True)
class Verified:
    """`broken` is empty when everything holds; `looked_at` counts rows and sums the entries."""

    broken: tuple[Broken, ...]
    looked_at: dict[str, int]


def verify(*, read: Begin) -> Verified:
    """One consistent look at all tables; changes nothing."""
    with read() as session:
        return Verified(tuple(reads.broken(session)), reads.totals(session))
