"""This site's own record of preemptions: how often, at which hour of the day, after how long.

A run is one stretch of a job on nodes. Runs that were preempted are the events; those that ended
otherwise, or run still, were only watched for so long (they are censored). Seconds throughout,
hours are those of the site's zone.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo

HOURS = 24
LEAST_EVENTS = 5  # fewer say nothing of the next one
LEAST_PEOPLE = 5  # behind a number that everybody may see
ALL_TYPES = ""  # the record of all GPU types together
_HOUR = 3600
_ROUNDING = 1e-9  # a share is a product of many fractions: half may be a little more than half
_95_PERCENT = 1.959964  # of the normal distribution, two-sided


@dataclass(frozen=True, slots=True)
class Rate:
    """Preemptions for each hour that a job is on nodes, with its 95 % interval."""

    events: int
    hours: float
    per_hour: float
    low: float
    high: float

    @property
    def is_enough(self) -> bool:
        return self.events >= LEAST_EVENTS

    @property
    def between_hours(self) -> float | None:
        """Hours on nodes from one preemption to the next; None where too few are known."""
        return self.hours / self.events if self.is_enough and self.hours else None


@dataclass(frozen=True, slots=True)
class Cell:
    """Sums over runs: seconds on nodes, the same times cards, preemptions, and of how many
    people."""

    seconds: int = 0
    card_seconds: int = 0
    events: int = 0
    people: int = 0

    @property
    def rate(self) -> Rate | None:
        """None where nothing ran."""
        return rate(self.events, self.seconds) if self.seconds else None


@dataclass(frozen=True, slots=True)
class Length:
    """Runs that were so many minutes on nodes (begun ones count): preempted, and the others."""

    minutes: int
    preempted: int
    others: int


@dataclass(frozen=True, slots=True)
class Step:
    """From `minutes` on nodes on, this share had not been preempted; `at_risk` were there."""

    minutes: int
    share: float
    at_risk: int


@dataclass(frozen=True, slots=True)
class Record:
    """Of one QoS and GPU type. `hours` are those of the day; a None among them is hidden: too few
    people. `requeues` waited `requeue_seconds` in all from when they could start again."""

    qos: str
    gpu_type: str
    since: datetime
    until: datetime
    runs: int
    whole: Cell
    hours: tuple[Cell | None, ...]
    lengths: tuple[Length, ...]
    requeues: int = 0
    requeue_seconds: int = 0

    @property
    def rate(self) -> Rate | None:
        return self.whole.rate

    @property
    def requeue_wait(self) -> float | None:
        """Mean seconds from preempted to running again; None where too few are known."""
        return self.requeue_seconds / self.requeues if self.requeues >= LEAST_EVENTS else None

    def at_hour(self, hour: int) -> Rate | None:
        """None where the hour is hidden, or nothing ran then."""
        cell = self.hours[hour]
        return cell.rate if cell else None


def rate(events: int, seconds: int) -> Rate:
    """Events over exposure. The interval is Byar's approximation of Poisson's exact one (Breslow
    and Day, Statistical Methods in Cancer Research II, 1987, p. 69)."""
    hours = seconds / _HOUR
    above = events + 1
    low = events * _byar(events, -1) if events else 0.0
    return Rate(events, hours, events / hours, low / hours, above * _byar(above, 1) / hours)


def _byar(count: int, sign: int) -> float:
    root = 1 - 1 / (9 * count) + sign * _95_PERCENT / (3 * math.sqrt(count))
    return float(root**3)


def survival(lengths: Iterable[Length], *, least: int = LEAST_EVENTS) -> tuple[Step, ...]:
    """The share of runs not yet preempted after so long on nodes, by Kaplan and Meier (J. Amer.
    Statist. Assoc. 53, 1958, 457-481); whoever was watched for just so long was at risk. It ends
    where fewer than `least` are left: of so few it would say nothing."""
    rows = sorted(lengths, key=lambda one: one.minutes)
    at_risk = sum(one.preempted + one.others for one in rows)
    share, found = 1.0, [Step(0, 1.0, at_risk)]
    for one in rows:
        if at_risk < least:
            break
        if one.preempted:
            share *= 1 - one.preempted / at_risk
            found.append(Step(one.minutes, share, at_risk))
        at_risk -= one.preempted + one.others
    return tuple(found)


def minutes_to(steps: Sequence[Step], preempted: float) -> int | None:
    """Minutes after which this share was preempted, 0.5 for the median; None: it never came so
    far among the runs that were watched."""
    least = 1 - preempted + _ROUNDING
    return next((one.minutes for one in steps if one.share <= least), None)


def hide(record: Record, least: int) -> Record | None:
    """What everybody may see: nothing of fewer people than `least`, nor an hour of so few. One
    hidden hour alone could be taken from the sum, so the one with the fewest people goes too."""
    if record.whole.people < least:
        return None
    hours: list[Cell | None] = [
        cell if cell and (not cell.seconds or cell.people >= least) else None
        for cell in record.hours
    ]
    left = [hour for hour, cell in enumerate(hours) if cell and cell.seconds]
    if hours.count(None) == 1 and left:
        hours[min(left, key=lambda hour: (hours[hour] or Cell()).people)] = None
    return replace(record, hours=tuple(hours))


@dataclass(frozen=True, slots=True)
class Edge:
    """Runs that began (or ended) in one hour: `bucket` counts hours since 1970, `offset` is the
    sum of their seconds into it; `card_` the same times cards."""

    bucket: int
    count: int
    offset: int
    cards: int
    card_offset: int
    events: int = 0


@dataclass(slots=True)
class Sums:
    """What the database sums up for one QoS and GPU type. `people` has for each the hours since
    1970 modulo 24 that their runs touched. A bucket ends `shift` seconds before a full hour of
    UTC, where the site's hours do."""

    began: list[Edge] = field(default_factory=list)
    ended: list[Edge] = field(default_factory=list)
    lengths: dict[int, tuple[int, int]] = field(default_factory=dict)
    people: dict[str, frozenset[int]] = field(default_factory=dict)
    requeues: int = 0
    requeue_seconds: int = 0


def together(parts: Iterable[Sums]) -> Sums:
    """All GPU types as one."""
    whole = Sums()
    for part in parts:
        whole.began += part.began
        whole.ended += part.ended
        whole.requeues += part.requeues
        whole.requeue_seconds += part.requeue_seconds
        for minutes, (preempted, others) in part.lengths.items():
            before = whole.lengths.get(minutes, (0, 0))
            whole.lengths[minutes] = before[0] + preempted, before[1] + others
        for person, hours in part.people.items():
            whole.people[person] = whole.people.get(person, frozenset()) | hours
    return whole


def shift_of(zone: tzinfo, at: datetime) -> int:
    """Seconds by which the zone's hours begin earlier than those of UTC; 0 for most zones."""
    offset = at.astimezone(zone).utcoffset()
    return int(offset.total_seconds()) % _HOUR if offset else 0


def record(
    qos: str, gpu_type: str, sums: Sums, *, since: datetime, until: datetime, zone: tzinfo
) -> Record:
    """The record from what the database summed up."""
    cells = _cells(sums, zone, shift_of(zone, until))
    lengths = tuple(Length(m, *counts) for m, counts in sorted(sums.lengths.items()))
    whole = Cell(
        sum(cell.seconds for cell in cells),
        sum(cell.card_seconds for cell in cells),
        sum(cell.events for cell in cells),
        len(sums.people),
    )
    return Record(
        qos=qos,
        gpu_type=gpu_type,
        since=since,
        until=until,
        runs=sum(one.preempted + one.others for one in lengths),
        whole=whole,
        hours=tuple(cells),
        lengths=lengths,
        requeues=sums.requeues,
        requeue_seconds=sums.requeue_seconds,
    )


def _cells(sums: Sums, zone: tzinfo, shift: int) -> list[Cell]:
    """Seconds on nodes in each hour of the day. With B(t) and E(t) the seconds since all that had
    begun, or ended, by t: what was on nodes up to t is B(t) - E(t), whoever it was."""
    buckets = _exposure(sums)
    seconds, cards, events = [0] * HOURS, [0] * HOURS, [0] * HOURS
    touched: dict[int, set[int]] = {}
    for bucket, (of_runs, of_cards) in buckets.items():
        hour = _hour_of(bucket, zone, shift)
        seconds[hour] += of_runs
        cards[hour] += of_cards
        touched.setdefault(bucket % HOURS, set()).add(hour)
    for edge in sums.ended:
        events[_hour_of(edge.bucket, zone, shift)] += edge.events
    people: list[set[str]] = [set() for _ in range(HOURS)]
    for person, places in sums.people.items():
        for place in places:
            for hour in touched.get(place, ()):
                people[hour].add(person)
    return [
        Cell(seconds[hour], cards[hour], events[hour], len(people[hour])) for hour in range(HOURS)
    ]


def _hour_of(bucket: int, zone: tzinfo, shift: int) -> int:
    middle = bucket * _HOUR - shift + _HOUR // 2
    return datetime.fromtimestamp(middle, UTC).astimezone(zone).hour


def _exposure(sums: Sums) -> dict[int, tuple[int, int]]:
    """By bucket: seconds on nodes, and the same times cards."""
    changes = _changes(sums)
    if not changes:
        return {}
    found: dict[int, tuple[int, int]] = {}
    runs = cards = 0  # on nodes since an earlier bucket
    for bucket in range(min(changes), max(changes) + 1):
        came, seconds, came_cards, card_seconds = changes.get(bucket, (0, 0, 0, 0))
        whole = runs * _HOUR + seconds, cards * _HOUR + card_seconds
        if whole[0]:
            found[bucket] = whole
        runs, cards = runs + came, cards + came_cards
    return found


def _changes(sums: Sums) -> Mapping[int, tuple[int, int, int, int]]:
    """By bucket: runs that came less those that went, the seconds of it that this bucket has, and
    both times cards."""
    found: dict[int, tuple[int, int, int, int]] = {}
    for edges, sign in ((sums.began, 1), (sums.ended, -1)):
        for edge in edges:
            rest = edge.count * _HOUR - edge.offset
            card_rest = edge.cards * _HOUR - edge.card_offset
            before = found.get(edge.bucket, (0, 0, 0, 0))
            change = edge.count, rest, edge.cards, card_rest
            now = [old + sign * new for old, new in zip(before, change, strict=True)]
            found[edge.bucket] = now[0], now[1], now[2], now[3]
    return found
