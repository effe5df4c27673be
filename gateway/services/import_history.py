"""Import what a cluster ran before there was a portal. Repeating it changes nothing."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain, islice
from typing import TYPE_CHECKING

from gateway.services import ingest, ingest_plan
from gateway.services.import_feed import BadHistory, Batch
from gateway.store import jobs, new_jobs
from gateway.store.uow import Begin
from gateway.wire import messages as m

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

# A file this long is worth making the indexes anew, in a store that has little yet.
_LONG = 4
Told = Callable[["ImportReport"], None]


@dataclass(slots=True)
class ImportReport:
    """`records` were in the file. `stored` are those the store now has, `changed` counts the rows
    of the database that this import made or changed. `cut`: why the file's end is missing."""

    records: int = 0
    stored: int = 0
    changed: int = 0
    steps: int = 0
    held: int = 0
    newly_held: int = 0
    clusters: list[str] = field(default_factory=list)
    cut: str | None = None

    @property
    def ties(self) -> bool:
        return self.records == self.stored + self.steps + self.held


def import_history(
    batches: Iterable[Batch],
    *,
    begin: Begin,
    now: datetime,
    told: Told | None = None,
    any_cluster: bool = True,
) -> ImportReport:
    """Store the batches. Killed anywhere, it leaves whole batches, and can be run again.

    A long file into a store of few jobs is one transaction: others wait for its end. Without
    `any_cluster`, BadHistory when the store has jobs, but none of the file's cluster: the same
    jobs under two names would be charged twice.
    """
    report = ImportReport()
    waiting = iter(batches)
    first = list(islice(waiting, _LONG))
    if not any_cluster:
        _known_cluster(first, begin=begin)
    if len(first) < _LONG or not _at_once(chain(first, waiting), report, begin, now, told):
        for batch in chain(first, waiting):
            with begin() as session:
                _store(session, batch, report, now)
            _tell(told, report)
    return report


def _known_cluster(first: list[Batch], *, begin: Begin) -> None:
    names = sorted({batch.cluster for batch in first if batch.jobs.rows})
    with begin() as session:
        known = jobs.clusters(session)
    strange = [name for name in names if name not in known]
    if known and strange:
        raise BadHistory(
            f"The portal has jobs of {', '.join(known)}, and these would be stored as those of "
            f"{', '.join(strange)}. If it is the same cluster, say --cluster {known[0]}; if it is "
            f"another one, --cluster {strange[0]}."
        )


def _at_once(
    batches: Iterator[Batch], report: ImportReport, begin: Begin, now: datetime, told: Told | None
) -> bool:
    """All in one transaction without secondary indexes; False when the store does not allow it,
    before any batch was taken."""
    try:
        with begin() as session:
            new_jobs.write_straight(session)
            dropped = new_jobs.drop_indexes(session)
            if not dropped:
                return False
            for batch in batches:
                _store(session, batch, report, now)
                _tell(told, report)
            new_jobs.make_indexes(session, dropped)
    finally:
        with begin() as session:
            new_jobs.write_as_ever(session)
    return True


def _store(session: "Session", batch: Batch, report: ImportReport, now: datetime) -> None:
    if batch.jobs.rows and batch.cluster not in report.clusters:
        report.clusters.append(batch.cluster)
    report.steps += batch.steps
    report.records = batch.total or report.records
    report.cut = batch.cut or report.cut
    report.held += len(batch.held)
    held = [m.HeldRow(raw, reason) for raw, reason in batch.held]
    report.newly_held += ingest.hold(session, held, cluster=batch.cluster, now=now)
    report.stored += len(batch.jobs.rows)
    report.changed += ingest_plan.apply_prepared(
        session,
        batch.jobs,
        batch.runs,
        several=batch.several,
        cluster=batch.cluster,
        now=now,
    )


def _tell(told: Told | None, report: ImportReport) -> None:
    if told is not None:
        told(report)
