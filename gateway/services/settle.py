"""Charge the runs that ended, each once; correct what accounting corrected; give back by rule.

A batch is one transaction: the charges, their entries, the holds they end and the runs' mark
are stored together or not at all, so a kill costs a repeat and nothing else.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import structlog

from gateway.core.billing import Doubt, Suspended, TypeOfNodes
from gateway.core.ledger import NewEntry
from gateway.core.pots import Pot
from gateway.core.pricing import PriceList
from gateway.errors import Busy
from gateway.services import node_types
from gateway.services.settle_books import Books
from gateway.services.settle_run import settle_run
from gateway.store import charges, dataset_faults, holds, ledger, prices
from gateway.store.charges import DueRun, new_review
from gateway.store.uow import Begin

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

log = structlog.get_logger()

BATCH = 1000


@dataclass(frozen=True, slots=True)
class Rules:
    """What the site chose. `tracked` False: accounting does not count GPUs on this cluster."""

    suspended: Suspended = Suspended.RUNNING
    tracked: bool = True


@dataclass(slots=True)
class SettleReport:
    settled: int = 0
    posted: int = 0
    review: int = 0
    refunded: int = 0
    corrected: int = 0


def settle(
    *,
    begin: Begin,
    now: datetime,
    rules: Rules | None = None,
    batch: int = BATCH,
    read: Begin | None = None,
) -> SettleReport:
    """Settle all runs that wait for it. Nothing is charged on a site without a price list.

    `read` looks first without a lock. A run that cannot be settled at all is set aside for the
    review, so that the others are charged.
    """
    report = SettleReport()
    given = rules or Rules()
    if read is not None:
        with read() as session:
            if not charges.any_due(session):
                return report
    while _turn(begin=begin, now=now, rules=given, batch=batch, report=report):
        pass
    return report


def _turn(*, begin: Begin, now: datetime, rules: Rules, batch: int, report: SettleReport) -> bool:
    """A batch; when that cannot be settled, its runs one by one."""
    try:
        return settle_batch(begin=begin, now=now, rules=rules, batch=batch, report=report)
    except Busy:
        raise
    except Exception:
        log.exception("settling_failed", batch=batch)
        if batch == 1:
            report.review += 1
            return _set_aside(begin=begin, now=now)
    for _ in range(batch):
        if not _turn(begin=begin, now=now, rules=rules, batch=1, report=report):
            return False
    return True


def _set_aside(*, begin: Begin, now: datetime) -> bool:
    """The oldest run is for a person to look at; what was charged for it stays as it is."""
    with begin() as session:
        charges.lock(session)
        for run in charges.due(session, most=1):
            before = charges.of_runs(session, [run.id]).get(run.id)
            if before is None:
                row = new_review(run.id, run.group, run.user, Doubt.UNSETTLED, now=now)
                charges.add_all(session, [row | {"id": charges.next_id(session)}])
            else:
                charges.doubt(session, before.id, Doubt.UNSETTLED.value)
            charges.settled(session, [run.id])
            return True
    return False


def settle_batch(
    *, begin: Begin, now: datetime, rules: Rules, batch: int, report: SettleReport
) -> bool:
    """One transaction; whether there may be more."""
    with begin() as session:
        price_list = prices.load(session)
        if price_list.begins is None:
            return False
        charges.lock(session)
        due = charges.due(session, most=batch)
        if not due:
            return False
        books = _open(session, due, price_list, now=now, rules=rules)
        for run in due:
            settle_run(books, run)
        _close(session, books, due)
    report.settled += len(due)
    for name in ("posted", "review", "refunded", "corrected"):
        setattr(report, name, getattr(report, name) + books.counts[name])
    return len(due) == batch


def _open(
    session: "Session",
    due: Sequence[DueRun],
    price_list: PriceList,
    *,
    now: datetime,
    rules: Rules,
) -> Books:
    """Everything the batch needs, read once, under the locks of its groups."""
    before = charges.of_runs(session, [run.id for run in due])
    groups = {run.group for run in due if run.group} | {row.group for row in before.values()}
    pots = {
        group: {pot.id: pot for pot in found}
        for group, found in ledger.lock(session, groups, now=now).items()
    }
    hold_ids = {run.hold_id for run in due if run.hold_id is not None}
    parts = holds.parts(session, hold_ids)
    corrected = [row.id for row in before.values() if row.version]
    drawn = charges.drawn(session, corrected)
    refunds = charges.refunds(session, corrected)
    given = {
        row.id: charges.given_back(session, row.id, group=row.group)
        for row in before.values()
        if row.id in refunds
    }
    lying = (*parts.values(), *drawn.values(), *given.values())
    _add_pots(session, pots, [pot for found in lying for pot in found])
    type_of: TypeOfNodes = node_types.reader(session)
    ended = [run.job_id for run in due if run.state.startswith("CANCELLED")]
    failed = [run.id for run in due if run.state.startswith("FAILED")]
    return Books(
        now=now,
        prices=price_list,
        suspended=rules.suspended,
        tracked=rules.tracked,
        type_of=type_of,
        pots=pots,
        holds={row.id: row for row in holds.by_ids(session, hold_ids)},
        parts=parts,
        before=before,
        drawn=drawn,
        refunds=refunds,
        given=given,
        kills=charges.administrators_kill(session, ended),
        lost_data=dataset_faults.lost_data(session, failed),
        next_charge=charges.next_id(session),
    )


def _add_pots(session: "Session", pots: dict[str, dict[int, Pot]], ids: Sequence[int]) -> None:
    """Pots that a hold or an earlier charge lies on and that are empty now."""
    known = {pot_id for found in pots.values() for pot_id in found}
    for group, pot in ledger.pots_by_id(session, [pot_id for pot_id in ids if pot_id not in known]):
        pots.setdefault(group, {})[pot.id] = pot


def _close(session: "Session", books: Books, due: Sequence[DueRun]) -> None:
    charges.add_all(session, books.new_charges)
    charges.change_all(session, books.changed_charges)
    entries: list[NewEntry] = books.entries
    ledger.post(session, entries)
    moved = [(hold_id, more, None) for hold_id, more in books.hold_changes.items() if more]
    holds.change(session, moved)
    for refund in books.new_refunds:
        charges.add_refund(session, refund)
    for refund_id, changed in books.refund_changes.items():
        charges.change_refund(session, refund_id, **changed)
    charges.settled(session, [run.id for run in due])
