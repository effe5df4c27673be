"""What this cluster counts and enforces: without it charges and gate mean nothing."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from gateway.brokerclient.port import Broker
from gateway.core.notices import Kind
from gateway.core.tres import GPU
from gateway.errors import BrokerRefused, BrokerSilent, BrokerUnreachable
from gateway.store import accounting_facts, notices, polls
from gateway.store.uow import Begin
from gateway.wire import messages as m

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

FACTS = "facts"
READ_AGAIN = timedelta(minutes=10)
_TRY_AGAIN = timedelta(seconds=30)
_LIMITS = "limits"


def check(*, begin: Begin, read: Begin, broker: Broker, now: datetime) -> bool:
    """Whether Slurm has ever said what it counts. Asks when the last answer is old."""
    with read() as session:
        row = polls.get(session, FACTS)
    known = row.succeeded_at is not None
    if row.succeeded_at and row.error_code is None and now - row.succeeded_at < READ_AGAIN:
        return known
    if row.error_code and row.tried_at and now - row.tried_at < _TRY_AGAIN:
        return known
    with begin() as session:
        polls.tried(session, FACTS, at=now)
    try:
        facts = broker.accounting_facts()
    except (BrokerRefused, BrokerUnreachable, BrokerSilent) as error:
        with begin() as session:
            polls.failed(session, FACTS, code=error.code)
        return known
    with begin() as session:
        _tell(session, facts, now=now)
        accounting_facts.put(session, facts)
        polls.succeeded(session, FACTS, began=now, at=now)
        polls.set_interval(session, FACTS, READ_AGAIN.total_seconds())
    return True


def gpus_tracked(*, read: Begin) -> bool:
    """As Slurm said last."""
    with read() as session:
        return not notices.is_open(session, Kind.GPUS_NOT_TRACKED)


def _tell(session: "Session", facts: m.AccountingFacts, *, now: datetime) -> None:
    wrong: dict[Kind, dict[str, str]] = {}
    if _LIMITS not in facts.enforced:
        wrong[Kind.LIMITS_NOT_ENFORCED] = {"enforced": ",".join(facts.enforced)}
    if GPU not in facts.tracked:
        wrong[Kind.GPUS_NOT_TRACKED] = {}
    if facts.overriding_qos:
        wrong[Kind.QOS_OVERRIDES] = {"qos": ", ".join(facts.overriding_qos)}
    every = (Kind.LIMITS_NOT_ENFORCED, Kind.GPUS_NOT_TRACKED, Kind.QOS_OVERRIDES)
    for kind in every:
        if kind in wrong:
            notices.tell(session, kind, kind=kind, facts=wrong[kind], now=now)
    notices.over(session, [kind for kind in every if kind not in wrong], now=now)
