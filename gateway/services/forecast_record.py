"""The record of forecasts: forecast against actual, for Slurm's plan and for ours."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from gateway.core import forecast_record as rules
from gateway.core.forecast import ForecastSource
from gateway.core.forecast_record import Bin, Score, Told
from gateway.core.wait_figures import GPU_CLASSES
from gateway.core.wait_sight import Sight, shown, shown_parts
from gateway.store.queries import forecasts as reads
from gateway.store.queries.forecasts import Asked
from gateway.store.uow import Begin

MOST = 100_000  # the newest of a period: more would keep the page waiting
LIKE_WINDOW = timedelta(days=90)
KEPT = timedelta(days=180)
_OURS_FIRST = (ForecastSource.HISTORY, ForecastSource.SLURM)


@dataclass(frozen=True, slots=True)
class Line:
    """Under one key; None where a source has no forecast there, or the reader may not see it."""

    key: str
    ours: Score | None
    slurm: Score | None


@dataclass(frozen=True, slots=True)
class Record:
    """`hidden` tells that there is more than the reader may see, of too few people; of bins so many
    by source. `cut`: there are more forecasts than were looked at."""

    whole: Line
    by_cards: tuple[Line, ...]
    by_partition: tuple[Line, ...]
    bins: Mapping[ForecastSource, tuple[Bin, ...]]
    hidden_bins: Mapping[ForecastSource, int]
    hidden: bool
    cut: bool


@dataclass(frozen=True, slots=True)
class Like:
    """Of forecasts like one: `share` of `counted` started by the p90 (Slurm's: by its plan)."""

    counted: int
    share: float


def record(asked: Asked, *, sight: Sight, read: Begin, now: datetime) -> Record:
    """For everybody, as far as they may see."""
    with read() as session:
        rows = reads.record(session, asked, user=sight.user, groups=sight.groups, most=MOST + 1)
    cut, rows = len(rows) > MOST, rows[:MOST]
    by_source = {source: [one for one in rows if one.source is source] for source in _OURS_FIRST}
    bins = {source: shown_parts(rules.bins(part), sight) for source, part in by_source.items()}
    whole, hidden = _lines(by_source, lambda _: "", sight, now)
    cards, hidden_cards = _lines(by_source, lambda one: rules.gpu_class(one.gpus), sight, now)
    partitions, hidden_partitions = _lines(by_source, lambda one: one.partition, sight, now)
    order = [name for name, _, _ in GPU_CLASSES]
    return Record(
        whole=whole[0] if whole else Line("", None, None),
        by_cards=tuple(sorted(cards, key=lambda line: order.index(line.key))),
        by_partition=tuple(partitions),
        bins={source: part.rows for source, part in bins.items()},
        hidden_bins={source: part.hidden for source, part in bins.items()},
        hidden=bool(hidden or hidden_cards or hidden_partitions),
        cut=cut,
    )


def choices(asked: Asked, *, sight: Sight, read: Begin) -> dict[str, list[str]]:
    """What the record can be filtered by: of groups only those that one may know of."""
    with read() as session:
        found = reads.choices(session, asked.since)
    if not sight.all:
        found["group"] = [group for group in found["group"] if group in sight.member]
    return found


def like(
    source: ForecastSource,
    *,
    user: str,
    partition: str,
    gpus: int,
    read: Begin,
    now: datetime,
    k: int,
) -> Like | None:
    """How forecasts at submit for this partition and class of cards did in the last 90 days; None
    where they are too few to say, or of too few other people than the reader."""
    with read() as session:
        found = reads.likes(
            session,
            source,
            user=user,
            partition=partition,
            gpus=_class(gpus),
            since=now - LIKE_WINDOW,
            now=now,
        )
    if found.counted < rules.LEAST or 0 < found.others < k:
        return None
    return Like(found.counted, found.by_p90 / found.counted)


def _lines(
    by_source: Mapping[ForecastSource, Sequence[Told]],
    key: Callable[[Told], str],
    sight: Sight,
    now: datetime,
) -> tuple[list[Line], int]:
    """Those with most forecasts first, and how many figures are hidden."""
    seen: dict[ForecastSource, dict[str, Score]] = {}
    hidden = 0
    for source, rows in by_source.items():
        parts: dict[str, list[Told]] = defaultdict(list)
        for one in rows:
            parts[key(one)].append(one)
        found = shown(
            ((name, rules.score(part, now=now)) for name, part in parts.items()),
            sight,
            partial(_together, parts),
        )
        seen[source], hidden = dict(found.rows), hidden + found.hidden
    ours, slurm = seen[ForecastSource.HISTORY], seen[ForecastSource.SLURM]
    lines = [Line(name, ours.get(name), slurm.get(name)) for name in {**ours, **slurm}]
    return sorted(lines, key=lambda line: (-_count(line), line.key)), hidden


def _together(parts: Mapping[str, Sequence[Told]], keys: Sequence[str]) -> int:
    return rules.others(one for key in keys for one in parts[key])


def _count(line: Line) -> int:
    return sum(one.forecasts for one in (line.ours, line.slurm) if one is not None)


def _class(gpus: int) -> tuple[int, int | None]:
    name = rules.gpu_class(gpus)
    return next((low, high) for one, low, high in GPU_CLASSES if one == name)
