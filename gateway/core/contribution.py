"""What groups bring, what is left of it on a day, and the shares or QoS that it earns.

All of it is whole numbers: amounts are millionths of a kind's unit, weights and scores millionths
of a point. Time counts in whole days of the site's zone, so that a day has one answer whenever it
is asked. What decays is worked out with 60 digits and rounded down to a millionth of a point, line
by line; shares are rounded down to whole ones. More brought never gives less; nor does what counts
once when it was brought later, up to today.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Context, Decimal
from enum import StrEnum
from functools import lru_cache
from math import isqrt

from gateway.core.credits import MILLION
from gateway.core.qos import GroupPolicy

LONGEST_HALF_LIFE = 36_500  # days
_EXACT = Context(prec=60)


class Counted(StrEnum):
    """An amount counts once, or again on each day while it lasts, as a donated node does."""

    ONCE = "once"
    PER_DAY = "per_day"


class Feed(StrEnum):
    """Where a kind's lines come from: typed by hand, or read from the ledger."""

    HAND = "hand"
    LOANS = "loans"  # what a group lent and has not got back
    TOP_UPS = "top_ups"  # money paid into a group's balance


class Shape(StrEnum):
    LINEAR = "linear"
    SQUARE_ROOT = "square_root"
    CAPPED = "capped"  # linear up to so many points


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Something that can be brought. `weight` is millionths of a point for one unit (and day).

    `half_life_days` None: it does not fade.
    """

    key: str
    name: str
    unit: str
    weight: int
    half_life_days: int | None = None
    counted: Counted = Counted.ONCE
    feed: Feed = Feed.HAND


@dataclass(frozen=True, slots=True, kw_only=True)
class Formula:
    """shares = base + scale · shape(points), between `least` and `most`. `scale` is millionths of
    a share a point (or a root of one); `cap` millionths of a point, for CAPPED alone."""

    shape: Shape = Shape.LINEAR
    base: int = 100
    scale: int = MILLION
    cap: int | None = None
    least: int = 1
    most: int = 100_000


@dataclass(frozen=True, slots=True)
class Tier:
    """From so many millionths of a point on, a group may use the QoS; below, it may not."""

    points: int
    qos: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What a site says of contribution. `formula` None: shares are not set.

    Groups in `left_alone` keep what they have, and so does each whose shares are `parent`.
    `automatic`: the nightly change is applied, not only proposed.
    """

    kinds: tuple[Kind, ...] = ()
    formula: Formula | None = None
    tiers: tuple[Tier, ...] = ()
    left_alone: tuple[str, ...] = ()
    automatic: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A line: so much (millionths of the unit), from `day` on. From `ended_on` on it is there no
    more: what counted once counts no longer, what counted per day adds nothing.

    `id` None: it was read from the ledger.
    """

    id: int | None
    group: str
    kind: str
    amount: int
    day: date
    ended_on: date | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """What an entry gave up to a day, without fading, and what is left; millionths of a point."""

    entry: Entry
    full: int
    left: int


@dataclass(frozen=True, slots=True)
class Score:
    """Millionths of a point; the sum of the parts, and never below 0."""

    points: int
    parts: tuple[Part, ...]


NOTHING = Score(0, ())


class Untouched(StrEnum):
    """Why a group keeps what it has."""

    LEFT_ALONE = "left_alone"
    DRIFTED = "drifted"  # somebody changed it behind the portal: a person says first what holds
    PARENT = "parent"


@dataclass(frozen=True, slots=True)
class Result:
    """What a group has and what the rules give it. With `untouched` both are the same."""

    before: GroupPolicy
    after: GroupPolicy
    score: Score
    untouched: Untouched | None = None

    @property
    def changes(self) -> bool:
        return self.before != self.after


def results(
    rules: Rules,
    entries: Iterable[Entry],
    groups: Sequence[GroupPolicy],
    day: date,
    *,
    usable: Mapping[str, tuple[str, ...]],
    drifted: Collection[str] = (),
) -> tuple[Result, ...]:
    """Every group that there is, in the order given; also those that brought nothing.

    `usable` are the QoS of each group's jobs, also where it has no list of its own.
    """
    found = scores(rules, entries, day)
    return tuple(
        Result(group, group, found.get(group.name, NOTHING), Untouched.DRIFTED)
        if group.name in drifted and group.name not in rules.left_alone
        else _result(rules, group, found.get(group.name, NOTHING), usable.get(group.name, ()))
        for group in groups
    )


def scores(rules: Rules, entries: Iterable[Entry], day: date) -> dict[str, Score]:
    """By group. Lines of a kind that the rules do not name count nothing."""
    kinds = {kind.key: kind for kind in rules.kinds}
    parts: dict[str, list[Part]] = defaultdict(list)
    for entry in entries:
        if entry.kind in kinds:
            parts[entry.group].append(part(kinds[entry.kind], entry, day))
    return {
        group: Score(max(0, sum(one.left for one in found)), tuple(found))
        for group, found in parts.items()
    }


def part(kind: Kind, entry: Entry, day: date) -> Part:
    """What is left of an entry on that day; nothing before its own."""
    whole = entry.amount * kind.weight
    first = (day - entry.day).days
    if first < 0:
        return Part(entry, 0, 0)
    ended = (day - entry.ended_on).days if entry.ended_on is not None else -1
    if kind.counted is Counted.ONCE:
        if ended >= 0:
            return Part(entry, whole // MILLION, 0)
        return Part(entry, whole // MILLION, _left(whole, _fade(kind.half_life_days, first)))
    # Each day that it lasted is an amount of its own: the youngest is `last` days old.
    last = max(0, ended + 1)
    days = max(0, first - last + 1)
    faded = _fade_of_days(kind.half_life_days, last, first) if days else Decimal(0)
    return Part(entry, whole * days // MILLION, _left(whole, faded))


def shares(formula: Formula, points: int) -> int:
    """Whole shares for a score in millionths of a point, rounded down."""
    match formula.shape:
        case Shape.LINEAR:
            earned = formula.scale * points // MILLION**2
        case Shape.SQUARE_ROOT:
            earned = isqrt(formula.scale**2 * points // MILLION**3)
        case Shape.CAPPED:
            capped = points if formula.cap is None else min(points, formula.cap)
            earned = formula.scale * capped // MILLION**2
    return min(max(formula.base + earned, formula.least), formula.most)


def _result(rules: Rules, group: GroupPolicy, score: Score, usable: tuple[str, ...]) -> Result:
    if group.name in rules.left_alone:
        return Result(group, group, score, Untouched.LEFT_ALONE)
    after = _with_tiers(rules.tiers, group, score.points, group.qos or usable)
    if rules.formula is None:
        return Result(group, after, score)
    if group.shares is None:
        return Result(group, after, score, Untouched.PARENT if after == group else None)
    return Result(group, replace(after, shares=shares(rules.formula, score.points)), score)


def _with_tiers(
    tiers: Sequence[Tier], group: GroupPolicy, points: int, has: tuple[str, ...]
) -> GroupPolicy:
    """QoS that no tier names stay, those of the account above as well; a default that is taken
    away gives way to Slurm's own."""
    given = {tier.qos for tier in tiers if points >= tier.points}
    taken = {tier.qos for tier in tiers} - given
    qos = set(has) - taken | given
    if qos == set(has):
        return group
    default = None if group.default_qos in taken else group.default_qos
    return replace(group, qos=tuple(sorted(qos)), default_qos=default)


def _left(whole: int, fade: Decimal) -> int:
    exact = _EXACT.multiply(Decimal(whole), fade)
    return int(_EXACT.divide(exact, Decimal(MILLION)).to_integral_value(rounding="ROUND_FLOOR"))


@lru_cache(maxsize=65536)
def _fade(half_life: int | None, days: int) -> Decimal:
    """1/2 to the power of days/half-life; whole half-lives are exact."""
    if half_life is None:
        return Decimal(1)
    halvings, rest = divmod(days, half_life)
    power = _EXACT.power(Decimal(2), _EXACT.divide(Decimal(-rest), Decimal(half_life)))
    return _EXACT.divide(power, _EXACT.power(Decimal(2), Decimal(halvings)))


@lru_cache(maxsize=65536)
def _fade_of_days(half_life: int | None, youngest: int, oldest: int) -> Decimal:
    """The sum of `_fade` over all days from the youngest to the oldest."""
    if half_life is None:
        return Decimal(oldest - youngest + 1)
    span = _EXACT.subtract(_fade(half_life, youngest), _fade(half_life, oldest + 1))
    return _EXACT.divide(span, _EXACT.subtract(Decimal(1), _fade(half_life, 1)))
