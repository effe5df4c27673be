"""Metrics and telemetry in sums of seconds and minutes: a line each second for a week is 600,000
lines, and a chart has 300 places. Sums can be added to, whatever comes in which piece."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from gateway.core.training.lines import Card, Metric, Sample

FINE_SECONDS, COARSE_SECONDS = 5, 60
IDLE_PERCENT = 5.0  # a process that only waits still shows a percent or two
FINE_FOR_SECONDS = 3600  # a short run is looked at closely; a long one has many minutes


@dataclass(frozen=True, slots=True)
class Point:
    """The lines of one restart within some seconds from `at` on (seconds since 1970).

    `loss` and `seconds` are sums over `losses` and `timed` lines."""

    restart: int
    at: int
    lines: int
    first_at: float
    last_at: float
    first_step: int
    last_step: int
    loss: float
    losses: int
    tokens: int
    samples: int
    seconds: float
    timed: int
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class CardMinute:
    """A card in one minute: sums over so many looks, and the most that was seen."""

    i: int
    looks: int
    util_sum: float
    util_max: float
    mem_max: int
    mem_total: int
    power_looks: int
    power_sum: float
    ecc_max: int

    @property
    def util(self) -> float | None:
        """Percent, the mean of the minute."""
        return self.util_sum / self.looks if self.looks else None


@dataclass(frozen=True, slots=True)
class Minute:
    """A node in the minute from `at` on; `procs` of `expected` ranks at the last look."""

    at: int
    last_at: float
    procs: int | None
    expected: int | None
    cards: tuple[CardMinute, ...]

    @property
    def utils(self) -> list[float]:
        """Percent, a card each; without the cards that nobody looked at."""
        return [card.util for card in self.cards if card.util is not None]


def place(at: float, began: float) -> int:
    """The beginning of the sum that a metric belongs to; `began` is the first metric of the job."""
    wide = FINE_SECONDS if 0 <= at - began < FINE_FOR_SECONDS else COARSE_SECONDS
    return int(at) // wide * wide


def points(lines: Iterable[Metric], began: float) -> dict[tuple[int, int], Point]:
    """By restart and place."""
    found: dict[tuple[int, int], Point] = {}
    for line in lines:
        key = line.restart, place(line.at, began)
        one = _point(line, key[1])
        found[key] = add(found[key], one) if key in found else one
    return found


def add(one: Point, other: Point) -> Point:
    """Both together: of the same restart and place."""
    first, last = sorted((one, other), key=lambda point: point.first_at)
    if other.last_at < one.last_at:
        last = one
    return Point(
        restart=one.restart,
        at=one.at,
        lines=one.lines + other.lines,
        first_at=first.first_at,
        last_at=last.last_at,
        first_step=first.first_step,
        last_step=last.last_step,
        loss=one.loss + other.loss,
        losses=one.losses + other.losses,
        tokens=_at_most(one.tokens + other.tokens),
        samples=_at_most(one.samples + other.samples),
        seconds=one.seconds + other.seconds,
        timed=one.timed + other.timed,
        peak_bytes=max(one.peak_bytes, other.peak_bytes),
    )


def minutes(samples: Iterable[Sample]) -> dict[int, Minute]:
    """By the second since 1970 that the minute begins with."""
    found: dict[int, Minute] = {}
    for one in samples:
        at = int(one.at) // 60 * 60
        made = Minute(at, one.at, one.procs, one.expected, tuple(map(_card, one.cards)))
        found[at] = join(found[at], made) if at in found else made
    return found


def join(one: Minute, other: Minute) -> Minute:
    """Both together: of the same node and minute."""
    last = max(one, other, key=lambda minute: minute.last_at)
    cards = {card.i: card for card in one.cards}
    for card in other.cards:
        cards[card.i] = _join(cards[card.i], card) if card.i in cards else card
    return replace(last, cards=tuple(cards[i] for i in sorted(cards)))


def dump(cards: Sequence[CardMinute]) -> list[list[float]]:
    """As the store keeps them: nine numbers a card, in the order of the fields."""
    names = CardMinute.__slots__
    return [[round(getattr(card, name), 2) for name in names] for card in cards]


def load(rows: Sequence[Sequence[float]]) -> tuple[CardMinute, ...]:
    return tuple(
        CardMinute(
            i=int(row[0]),
            looks=int(row[1]),
            util_sum=row[2],
            util_max=row[3],
            mem_max=int(row[4]),
            mem_total=int(row[5]),
            power_looks=int(row[6]),
            power_sum=row[7],
            ecc_max=int(row[8]),
        )
        for row in rows
    )


def _point(line: Metric, at: int) -> Point:
    return Point(
        restart=line.restart,
        at=at,
        lines=1,
        first_at=line.at,
        last_at=line.at,
        first_step=line.step,
        last_step=line.step,
        loss=line.loss or 0.0,
        losses=int(line.loss is not None),
        tokens=line.tokens or 0,
        samples=line.samples or 0,
        seconds=line.seconds or 0.0,
        timed=int(line.seconds is not None),
        peak_bytes=line.peak_bytes or 0,
    )


def _card(card: Card) -> CardMinute:
    return CardMinute(
        i=card.i,
        looks=int(card.util is not None),
        util_sum=card.util or 0.0,
        util_max=card.util or 0.0,
        mem_max=card.mem or 0,
        mem_total=card.mem_total or 0,
        power_looks=int(card.power is not None),
        power_sum=card.power or 0.0,
        ecc_max=card.ecc or 0,
    )


def _join(one: CardMinute, other: CardMinute) -> CardMinute:
    return CardMinute(
        i=one.i,
        looks=one.looks + other.looks,
        util_sum=one.util_sum + other.util_sum,
        util_max=max(one.util_max, other.util_max),
        mem_max=max(one.mem_max, other.mem_max),
        mem_total=max(one.mem_total, other.mem_total),
        power_looks=one.power_looks + other.power_looks,
        power_sum=one.power_sum + other.power_sum,
        ecc_max=max(one.ecc_max, other.ecc_max),
    )


def _at_most(value: int) -> int:
    return min(value, 2**40)
