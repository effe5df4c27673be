"""Accounting into jobs and runs: windows that overlap, a watermark, and nothing dropped.

The watermark moves in the transaction that stored the window's last rows. Importing a window
twice changes nothing, so a kill anywhere costs only a repeat.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from gateway.brokerclient.port import Broker
from gateway.services import ingest_plan
from gateway.services.poll import ACCOUNTING, ACCOUNTING_LATE, BROKER_ERRORS
from gateway.store import jobs, polls
from gateway.store.uow import Begin
from gateway.wire import messages as m

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

FIRST_WINDOW = timedelta(days=1)
LONGEST_WINDOW = timedelta(hours=6)
# slurmctld hands records to slurmdbd a little late; LATE_TURN catches those that come later.
OVERLAP = timedelta(minutes=5)
_ROWS = 500


@dataclass(frozen=True, slots=True)
class Turn:
    """One of the two reads of accounting, with a watermark of its own that stays `trails`
    behind what was read."""

    name: str
    trails: timedelta


FIRST_TURN = Turn(ACCOUNTING, timedelta(0))
# After an outage of slurmdbd, slurmctld hands over its backlog for a while: what was read too
# early is read again.
LATE_TURN = Turn(ACCOUNTING_LATE, timedelta(hours=2))


@dataclass(frozen=True, slots=True)
class IngestReport:
    """What an import did. `uncounted` is an alarm: a second query counted other rows."""

    error_code: str | None = None
    rows: int = 0
    changed: int = 0
    held: int = 0
    uncounted: int = 0
    windows: int = 0


def ingest(
    *,
    begin: Begin,
    broker: Broker,
    cluster: str,
    now: datetime,
    backfill: timedelta = FIRST_WINDOW,
    most_windows: int = 20,
    turn: Turn = FIRST_TURN,
) -> IngestReport:
    """Read accounting from the watermark to `now`, a window at a time; what `most_windows` left
    over is read at the next turn. Without a watermark it begins `backfill` ago."""
    with begin() as session:
        mark = polls.get(session, turn.name).watermark
        polls.tried(session, turn.name, at=now)
    report = IngestReport()
    # A clock set back must not turn the window round.
    since = min(mark, now) - OVERLAP if mark else now - backfill
    while report.windows < most_windows:
        until = min(now, since + LONGEST_WINDOW)
        try:
            answer = _counted(broker, since, until)
        except BROKER_ERRORS as error:
            with begin() as session:
                polls.failed(session, turn.name, code=error.code)
            return replace(report, error_code=error.code)
        window = store(
            answer, begin=begin, cluster=cluster, now=now, window=(since, until), turn=turn
        )
        report = _sum(report, window)
        if until >= now:
            break
        since = until - OVERLAP
    return report


def store(
    answer: m.Accounting,
    *,
    begin: Begin,
    cluster: str,
    now: datetime,
    window: tuple[datetime, datetime] | None = None,
    turn: Turn = FIRST_TURN,
) -> IngestReport:
    """Store an answer; with `window` the watermark moves with the last rows."""
    changed = held = 0
    uncounted = answer.counted - len(answer.runs) - len(answer.held)
    for batch in _whole_jobs(answer.runs):
        with begin() as session:
            changed += ingest_plan.apply(session, batch, cluster=cluster, now=now)
    with begin() as session:
        held += hold(session, answer.held, cluster=cluster, now=now)
        if window is not None:
            held += _alarm(session, uncounted, window, cluster=cluster, now=now)
            polls.succeeded(
                session,
                turn.name,
                began=now,
                at=now,
                watermark=min(window[1], now - turn.trails),
                error_code="accounting_count_differs" if uncounted else None,
            )
    return IngestReport(
        rows=len(answer.runs), changed=changed, held=held, uncounted=abs(uncounted), windows=1
    )


def _counted(broker: Broker, since: datetime, until: datetime) -> m.Accounting:
    """A job that ends between the two queries differs once; a row that got lost differs twice."""
    answer = broker.accounting(since=since, until=until)
    if answer.counted == len(answer.runs) + len(answer.held):
        return answer
    return broker.accounting(since=since, until=until)


def _whole_jobs(runs: Sequence[m.RunRecord]) -> list[list[m.RunRecord]]:
    """Batches of a few hundred rows that keep all rows of one id together, oldest first."""
    ordered = sorted(runs, key=lambda run: (run.job_id, run.submit_time, run.restarts))
    batches: list[list[m.RunRecord]] = []
    for run in ordered:
        last = batches[-1] if batches else None
        if last is None or (len(last) >= _ROWS and last[-1].job_id != run.job_id):
            last = []
            batches.append(last)
        last.append(run)
    return batches


def hold(session: "Session", rows: Sequence[m.HeldRow], *, cluster: str, now: datetime) -> int:
    """Keep rows for a person to look at; answers how many were not kept already."""
    return sum(
        jobs.hold_row(
            session,
            cluster=cluster,
            fingerprint=_fingerprint(cluster, row.raw),
            raw=row.raw,
            reason=row.reason,
            now=now,
        )
        for row in rows
    )


def _alarm(
    session: "Session",
    uncounted: int,
    window: tuple[datetime, datetime],
    *,
    cluster: str,
    now: datetime,
) -> int:
    """A count that differs is kept for a person to look at, once an hour of accounting."""
    if not uncounted:
        return 0
    since, until = window
    hour = until.replace(minute=0, second=0, microsecond=0)
    return jobs.hold_row(
        session,
        cluster=cluster,
        fingerprint=_fingerprint(cluster, f"count {hour.isoformat()}"),
        raw=f"{since.isoformat()} {until.isoformat()} {uncounted:+d}",
        reason="accounting_count_differs",
        now=now,
    )


def _fingerprint(cluster: str, raw: str) -> str:
    return hashlib.sha256(f"{cluster}\0{raw}".encode("utf-8", "surrogatepass")).hexdigest()


def _sum(one: IngestReport, other: IngestReport) -> IngestReport:
    return IngestReport(
        rows=one.rows + other.rows,
        changed=one.changed + other.changed,
        held=one.held + other.held,
        uncounted=one.uncounted + other.uncounted,
        windows=one.windows + other.windows,
    )
