"""Make forecasts of the jobs that wait, show the newest, keep some, and learn what came of them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from gateway.core.forecast import Ask, Forecast, ForecastSource, NoForecast
from gateway.core.reasons import reason_key
from gateway.services.forecast_record import KEPT
from gateway.store import forecasts as store
from gateway.store.forecasts import Made, Newest, WaitingRow
from gateway.store.queries.forecasts import SUBMIT, WAITING
from gateway.store.uow import Begin
from gateway.store.upsert import chunks

MOST = 10_000  # jobs that wait
_BATCH = 1000
# A job of plain sbatch counts as forecast at its submit when it is seen so soon after.
FIRST = timedelta(minutes=10)
# The record gets one an hour; of long waits fewer, a 24th of the wait apart.
_APART, _PART = timedelta(hours=1), 24
# The person's own doing, or something that no waiting helps: words, no number.
OWN_DOING = frozenset(
    (
        "dependency",
        "dependency_never",
        "held_by_user",
        "held_by_admin",
        "held_after_requeues",
        "begin_time",
        "array_limit",
    )
)
NEVER = frozenset(
    (
        "partition_node_limit",
        "partition_time_limit",
        "partition_config",
        "constraints",
        "too_large",
        "too_large_gpus",
        "too_long",
        "too_small",
        "too_small_gpus",
        "account_not_allowed",
        "qos_not_allowed",
        "reservation_gone",
    )
)


class Forecaster(Protocol):
    """What answers from the site's history. `version` names the model."""

    @property
    def version(self) -> str | None: ...

    def forecast(self, asks: Sequence[Ask]) -> Sequence[Forecast | NoForecast]: ...


@dataclass(frozen=True, slots=True)
class Report:
    waiting: int = 0
    made: int = 0
    kept: int = 0
    resolved: int = 0


def renew(*, forecaster: Forecaster, begin: Begin, read: Begin, now: datetime) -> Report:
    """All jobs that wait, in short transactions. Safe to kill and to repeat: what is kept already
    is not kept again before its time."""
    with begin() as session:
        store.link(session)
        resolved = store.resolve(session)
        store.forget_others(session)
    with read() as session:
        rows = store.waiting(session, most=MOST)
        last = store.last_kept(session)
    made = kept = 0
    for part in chunks(rows, _BATCH):
        newest = [one for row in _asked(part, forecaster, now) for one in row]
        to_keep = list(_due(part, newest, last, forecaster.version, now))
        with begin() as session:
            store.renew(session, [row.id for row in part], newest)
            store.keep(session, to_keep)
        made, kept = made + len(newest), kept + len(to_keep)
    return Report(len(rows), made, kept, resolved)


def prune(*, begin: Begin, now: datetime) -> None:
    """Forget what is older than half a year."""
    with begin() as session:
        store.prune(session, before=now - KEPT)


def ask_of(row: WaitingRow, now: datetime) -> Ask:
    return Ask(
        at=now,
        group=row.group,
        partition=row.partition,
        qos=row.qos,
        gpus=row.gpus,
        gpu_type=row.gpu_type,
        nodes=row.nodes,
        cpus=row.cpus,
        limit_minutes=row.limit_minutes,
        priority=row.priority,
        submitted=row.eligible_time or row.submit_time,
    )


def _asked(
    rows: Sequence[WaitingRow], forecaster: Forecaster, now: datetime
) -> Iterator[list[Newest]]:
    """What is said of each: nothing of those that wait for their own person."""
    own = {row.id for row in rows if _is_own_doing(row, now)}
    can = [row for row in rows if row.id not in own and reason_key(row.reason) not in NEVER]
    answers = forecaster.forecast([ask_of(row, now) for row in can])
    by_id = dict(zip((row.id for row in can), answers, strict=True))
    for row in rows:
        if row.id not in own:
            yield [_ours(row, by_id.get(row.id, NoForecast.NEVER), now), *_slurms(row, now)]


def _is_own_doing(row: WaitingRow, now: datetime) -> bool:
    later = row.eligible_time is not None and row.eligible_time > now
    return later or reason_key(row.reason) in OWN_DOING


def _ours(row: WaitingRow, answer: Forecast | NoForecast, now: datetime) -> Newest:
    source = ForecastSource.HISTORY
    if isinstance(answer, NoForecast):
        return Newest(row.id, source, now, None, None, 0, answer.value)
    p50, p90 = times(answer, now)
    return Newest(row.id, source, now, p50, p90, answer.jobs, None)


def _slurms(row: WaitingRow, now: datetime) -> Iterator[Newest]:
    """Its own plan, where it has one that is not past."""
    if row.estimated_start is not None and row.estimated_start >= now:
        yield Newest(row.id, ForecastSource.SLURM, now, row.estimated_start, None, 0, None)


def times(answer: Forecast, now: datetime) -> tuple[datetime, datetime | None]:
    """p50 and p90 as moments."""
    p90 = None if answer.p90_s is None else now + timedelta(seconds=answer.p90_s)
    return now + timedelta(seconds=answer.p50_s), p90


def _due(
    rows: Collection[WaitingRow],
    newest: Sequence[Newest],
    last: Mapping[tuple[int, str], datetime],
    version: str | None,
    now: datetime,
) -> Iterator[Made]:
    """Those that the record gets: the first, then one an hour. An array's record stands for many
    starts and is in none."""
    by_id = {row.id: row for row in rows}
    for one in newest:
        row, before = by_id[one.job_id], last.get((one.job_id, one.source.value))
        waited = now - row.submit_time
        if one.p50_at is None or row.is_array:
            continue
        if before is not None and now - before < max(_APART, waited / _PART):
            continue
        first = before is None and waited <= FIRST
        ours = one.source is ForecastSource.HISTORY
        yield Made(
            job_id=row.id,
            submission_id=None,
            made_at=now,
            moment=SUBMIT if first else WAITING,
            source=one.source,
            p50_at=one.p50_at,
            p90_at=one.p90_at,
            partition=row.partition,
            group_name=row.group,
            qos=row.qos,
            gpus=row.gpus,
            gpu_type=row.gpu_type,
            limit_minutes=row.limit_minutes,
            jobs=one.jobs,
            model=version if ours else None,
        )
