"""The record of forecasts: forecast against actual, for Slurm's plan and for ours."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from gateway.core import forecast_record as rules
from gateway.core.access import Permission, Viewer
from gateway.core.forecast import ForecastSource
from gateway.core.forecast_record import Bin, Score, Told
from gateway.core.wait_figures import GPU_CLASSES
from gateway.store.queries import forecasts as reads
from gateway.store.queries.forecasts import Asked, Likes, Own
from gateway.store.uow import Begin

MOST = 100_000  # the newest of a period: more would keep the page waiting
LIKE_WINDOW = timedelta(days=90)
KEPT = timedelta(days=180)


@dataclass(frozen=True, slots=True)
class Line:
    """Under one key. A source is None where it has no forecast there, or of too few people;
    `hidden` says the latter."""

    key: str
    ours: Score | None
    slurm: Score | None
    hidden: bool


@dataclass(frozen=True, slots=True)
class Record:
    """`cut`: there are more than were looked at. `hidden_bins` by source: of too few people."""

    whole: Line
    by_cards: tuple[Line, ...]
    by_partition: tuple[Line, ...]
    bins: Mapping[ForecastSource, tuple[Bin, ...]]
    hidden_bins: Mapping[ForecastSource, int]
    cut: bool


@dataclass(frozen=True, slots=True)
class Like:
    """Of forecasts like one: `share` of `counted` started by the p90 (Slurm's: by its plan)."""

    counted: int
    share: float


def record(asked: Asked, *, viewer: Viewer | None, read: Begin, now: datetime, k: int) -> Record:
    """For everybody: a row of figures of fewer than `k` other people is hidden. `viewer` None:
    whoever runs commands on this host, who sees all."""
    with read() as session:
        rows = reads.record(session, asked, own=own_of(viewer), most=MOST + 1)
    cut, rows = len(rows) > MOST, rows[:MOST]
    by_source = {source: [one for one in rows if one.source is source] for source in ForecastSource}
    shown = {source: rules.bins(part) for source, part in by_source.items()}
    bins = {source: tuple(one for one in part if is_open(one, k)) for source, part in shown.items()}
    order = [name for name, _, _ in GPU_CLASSES]
    cards = _lines(rows, lambda one: rules.gpu_class(one.gpus), now, k)
    whole = _lines(rows, lambda _: "", now, k)
    return Record(
        whole=whole[0] if whole else Line("", None, None, hidden=False),
        by_cards=tuple(sorted(cards, key=lambda line: order.index(line.key))),
        by_partition=tuple(_lines(rows, lambda one: one.partition, now, k)),
        bins=bins,
        hidden_bins={source: len(shown[source]) - len(bins[source]) for source in shown},
        cut=cut,
    )


def like(
    source: ForecastSource, *, partition: str, gpus: int, read: Begin, now: datetime, k: int
) -> Like | None:
    """How forecasts at submit for this partition and class of cards did in the last 90 days; None
    where they are too few, or of too few people, to say."""
    with read() as session:
        found: Likes = reads.likes(
            session,
            source,
            partition=partition,
            gpus=_class(gpus),
            since=now - LIKE_WINDOW,
            now=now,
        )
    if found.counted < rules.LEAST or found.people < k:
        return None
    return Like(found.counted, found.by_p90 / found.counted)


def own_of(viewer: Viewer | None) -> Own:
    if viewer is None:
        return Own(all=True)
    return Own(viewer.unix_user, frozenset(viewer.leads), viewer.may(Permission.SEE_ALL_JOBS))


def is_open(one: Score | Bin, k: int) -> bool:
    """Of one's own jobs alone, or of enough others."""
    return one.others == 0 or one.others >= k


def _lines(rows: Sequence[Told], key: Callable[[Told], str], now: datetime, k: int) -> list[Line]:
    """Those with most forecasts first."""
    found = [
        _line(name, scores, k) for name, scores in rules.by_source(rows, key=key, now=now).items()
    ]
    return sorted(found, key=lambda line: (-_count((line.ours, line.slurm)), line.key))


def _line(name: str, scores: Mapping[ForecastSource, Score], k: int) -> Line:
    ours, slurm = scores.get(ForecastSource.HISTORY), scores.get(ForecastSource.SLURM)
    line = Line(name, ours, slurm, hidden=False)
    if ours is not None and not is_open(ours, k):
        line = replace(line, ours=None, hidden=True)
    if slurm is not None and not is_open(slurm, k):
        line = replace(line, slurm=None, hidden=True)
    return line


def _count(scores: Iterable[Score | None]) -> int:
    return sum(one.forecasts for one in scores if one is not None)


def _class(gpus: int) -> tuple[int, int | None]:
    name = rules.gpu_class(gpus)
    return next((low, high) for one, low, high in GPU_CLASSES if one == name)
