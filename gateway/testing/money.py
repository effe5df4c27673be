"""Prices, credit and what became of them, for tests. Amounts are millionths."""

from datetime import datetime, timedelta

from sqlalchemy import func, select

from gateway.services import prices
from gateway.store import charges
from gateway.store import money_models as mm
from gateway.store.charges import ChargeRow
from gateway.store.models import Run
from gateway.store.uow import Begin
from gateway.testing.builders import NOW

LONG_AGO = NOW - timedelta(days=400)


def one_credit_an_hour(begin: Begin, *types: str, starts: datetime = LONG_AGO) -> None:
    """A price of 1 for each card-hour."""
    for kind in types or ("a100", "rtx4090"):
        set_price(begin, kind, "1", starts=starts)


def set_price(begin: Begin, resource: str, per_hour: str, *, starts: datetime = LONG_AGO) -> None:
    prices.set_price(resource, per_hour, starts=starts, begin=begin, now=NOW, backdated=True)


def set_terms(begin: Begin, qos: str, factor: str, preempted: str = "pay") -> None:
    prices.set_terms(
        qos, factor, preempted=preempted, starts=LONG_AGO, begin=begin, now=NOW, backdated=True
    )


def balance(begin: Begin, group: str) -> int:
    """What all pots of the group hold, holds taken off."""
    with begin() as session:
        query = select(func.coalesce(func.sum(mm.Pot.left), 0)).where(mm.Pot.group == group)
        return int(session.scalar(query) or 0)


def entries_of(begin: Begin, group: str) -> list[tuple[str, int]]:
    """Kind and amount of each line, oldest first."""
    with begin() as session:
        query = select(mm.Entry.kind, mm.Entry.amount).where(mm.Entry.group == group)
        return [(row[0], row[1]) for row in session.execute(query.order_by(mm.Entry.id))]


def charge_of(begin: Begin, run_id: int) -> ChargeRow:
    with begin() as session:
        return charges.of_runs(session, [run_id])[run_id]


def change_run(begin: Begin, run_id: int, **values: object) -> None:
    """As accounting corrects a run: it is to be settled again."""
    with begin() as session:
        run = session.get_one(Run, run_id)
        for name, value in (values | {"to_settle": True}).items():
            setattr(run, name, value)
