"""What the hours cost at the list, as a package, and where jobs are preempted. Exact."""

import math
from dataclasses import dataclass
from fractions import Fraction

from gateway.core.credits import MILLION, Credits
from gateway.core.pricing import cost

SECONDS_AN_HOUR = 3600


@dataclass(frozen=True, slots=True)
class Rate:
    """A way to buy card-hours. `kind`: normal, package or spot; a factor is in millionths.
    `is_free_when_preempted`: the site does not charge a run that was preempted."""

    kind: str
    name: str
    per_hour: Credits
    factor_millionths: int = MILLION
    is_free_when_preempted: bool = False

    @property
    def exact(self) -> Fraction:
        return Fraction(self.per_hour * self.factor_millionths, MILLION)


@dataclass(frozen=True, slots=True)
class Priced:
    """`work` is without waste; `expected`, `hours` and `unit_seconds` are with it."""

    rate: Rate
    waste: float
    hours: float
    unit_seconds: int
    work: Credits
    expected: Credits


@dataclass(frozen=True, slots=True)
class Crossing:
    """`cheap` an hour costs more in the end once its waste is so much beyond that of `dear`: a
    share of the useful hours. `is_passed`: it is so here."""

    cheap: str
    dear: str
    waste: Fraction
    is_passed: bool


def priced(rate: Rate, *, gpus: int, hours: float, waste: float) -> Priced:
    """Card-seconds are rounded upward, then the price list's own rounding."""
    work = _unit_seconds(gpus, hours)
    with_waste = _unit_seconds(gpus, hours * (1 + waste))
    return Priced(
        rate=rate,
        waste=waste,
        hours=hours * (1 + waste),
        unit_seconds=with_waste,
        work=cost(work, rate.per_hour, rate.factor_millionths),
        expected=cost(with_waste, rate.per_hour, rate.factor_millionths),
    )


def cheapest(found: tuple[Priced, ...]) -> Priced | None:
    return min(found, key=lambda one: (one.expected, one.waste, one.rate.name), default=None)


def crossings(found: tuple[Priced, ...]) -> tuple[Crossing, ...]:
    """From which waste on a way that may be preempted costs more than one that may not."""
    spots = [one for one in found if one.rate.kind == "spot" and one.rate.exact]
    steady = [one for one in found if one.rate.kind != "spot"]
    return tuple(
        Crossing(
            spot.rate.name,
            other.rate.name,
            break_even(spot.rate, other.rate),
            (1 + spot.waste) / (1 + other.waste) - 1 > break_even(spot.rate, other.rate),
        )
        for spot in spots
        for other in steady
        if other.rate.exact > spot.rate.exact
    )


def break_even(cheap: Rate, dear: Rate) -> Fraction:
    """The extra waste at which both cost the same: a share of the useful hours."""
    return dear.exact / cheap.exact - 1


def per_card_hour(amount: Credits, *, cards: int, hours: int) -> Fraction:
    """What a price for a block of cards and hours comes to, in millionths."""
    return Fraction(amount, cards * hours)


def _unit_seconds(gpus: int, hours: float) -> int:
    return gpus * math.ceil(hours * SECONDS_AN_HOUR)
