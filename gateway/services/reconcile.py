"""Open jobs that the queue no longer has: ask accounting how each of them ended.

The ordinary window misses a job whose end reached slurmdbd late. A narrow window around the
moment when the job was last seen holds its run for certain, with the end it has by now.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from gateway.brokerclient.port import Broker
from gateway.services.ingest import store
from gateway.services.poll import BROKER_ERRORS
from gateway.store import jobs
from gateway.store.uow import Begin

_AROUND = timedelta(seconds=1)
_MOST_WINDOWS = 20
_MOST_JOBS = 2000


@dataclass(frozen=True, slots=True)
class ReconcileReport:
    """`still_open` jobs have no end in accounting either: they stay open."""

    error_code: str | None = None
    asked: int = 0
    still_open: int = 0


def reconcile(
    *,
    begin: Begin,
    broker: Broker,
    cluster: str,
    now: datetime,
    recent: timedelta | None = None,
) -> ReconcileReport:
    """Ask accounting about jobs that went from the queue. Silence ends nothing.

    `recent` leaves out those that went longer ago: a job that accounting never ends must not
    be asked about at every turn.
    """
    since = now - recent if recent else None
    with begin() as session:
        left = jobs.left_queue(session, cluster, since=since, limit=_MOST_JOBS)
    # Jobs that went together were seen together, so a few windows hold them all.
    moments = sorted({job.seen_at.replace(microsecond=0) for job in left})[:_MOST_WINDOWS]
    for moment in moments:
        try:
            answer = broker.accounting(since=moment - _AROUND, until=moment + _AROUND)
        except BROKER_ERRORS as error:
            return ReconcileReport(error_code=error.code, asked=len(left), still_open=len(left))
        store(answer, begin=begin, cluster=cluster, now=now)
    with begin() as session:
        still = jobs.left_queue(session, cluster, since=since, limit=_MOST_JOBS)
    return ReconcileReport(asked=len(left), still_open=len(still))
