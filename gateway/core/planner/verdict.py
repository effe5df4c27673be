"""Whether it fits, on how few cards, and what would change that."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from gateway.core.planner.cards import Card, Cards
from gateway.core.planner.figures import Figure
from gateway.core.planner.memory import memory
from gateway.core.planner.model import Model
from gateway.core.planner.setup import MOST_GPUS, Recompute, Setup
from gateway.core.planner.strategies import STRATEGIES, Strategy

_MOST_BATCH = 4096


class Fit(StrEnum):
    """`tight`: the estimate fits, the upper end of its band does not."""

    YES = "yes"
    TIGHT = "tight"
    NO = "no"


@dataclass(frozen=True, slots=True)
class Fewest:
    """The least cards that a strategy fits on, None where no number of cards helps. `total` is
    the memory of a card there, or for the cards that were asked for."""

    strategy: str
    gpus: int | None
    total: Figure
    host: Figure
    is_rough: bool


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that alone makes it fit, or the end of what fits. `kind`: gpus, strategy,
    micro_batch, recompute, card; `values` what to set, best first."""

    kind: str
    values: tuple[str, ...]


def fit(total: Figure, card: Card) -> Fit:
    if total.value > card.memory:
        return Fit.NO
    return Fit.YES if total.high <= card.memory else Fit.TIGHT


def fewest(model: Model, setup: Setup, card: Card) -> tuple[Fewest, ...]:
    """For every strategy, with the batch and precision that were asked for."""
    return tuple(_fewest_of(one, model, setup, card) for one in STRATEGIES)


def changes(model: Model, setup: Setup, card: Card, cards: Cards) -> tuple[Change, ...]:
    """What alone would make it fit; for what fits, how far batch and cards may go."""
    largest = largest_batch(model, setup, card)
    if fits(model, setup, card):
        least = least_gpus(model, setup, card)
        found = [Change("micro_batch", (str(largest),)), Change("gpus", (str(least),))]
        return tuple(found)
    return tuple(
        Change(kind, values)
        for kind, values in (
            ("gpus", _text(least_gpus(model, setup, card))),
            ("strategy", tuple(_strategies(model, setup, card))),
            ("micro_batch", _text(largest or None)),
            ("recompute", tuple(_recomputes(model, setup, card))),
            ("card", tuple(_cards(model, setup, cards))),
        )
        if values
    )


def fits(model: Model, setup: Setup, card: Card) -> bool:
    return memory(model, setup).total.value <= card.memory


def least_gpus(model: Model, setup: Setup, card: Card) -> int | None:
    """More cards never need more memory each, so that halving finds the least."""
    most = 1 if setup.strategy.name == "single" else MOST_GPUS
    return _least(lambda gpus: fits(model, setup.over(gpus), card), most)


def largest_batch(model: Model, setup: Setup, card: Card) -> int:
    """0: not even one sequence fits."""
    past = _least(lambda size: not fits(model, _batch(setup, size), card), _MOST_BATCH)
    return (past or _MOST_BATCH + 1) - 1


def _least(holds: Callable[[int], bool], most: int) -> int | None:
    """The least number from 1 to `most` from which on it holds."""
    if not holds(most):
        return None
    low, high = 1, most
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def _fewest_of(strategy: Strategy, model: Model, setup: Setup, card: Card) -> Fewest:
    own = replace(setup, strategy=strategy)
    if strategy.name == "single":
        own = own.over(1)
    least = least_gpus(model, own, card)
    found = memory(model, own.over(least or own.gpus))
    return Fewest(strategy.name, least, found.total, found.host, strategy.is_rough)


def _strategies(model: Model, setup: Setup, card: Card) -> Iterator[str]:
    for one in STRATEGIES:
        if one.name != "single" and fits(model, replace(setup, strategy=one), card):
            yield one.name


def _recomputes(model: Model, setup: Setup, card: Card) -> Iterator[str]:
    for one in Recompute:
        if fits(model, replace(setup, recompute=one), card):
            yield one.value


def _cards(model: Model, setup: Setup, cards: Cards) -> Iterator[str]:
    total = memory(model, setup).total.value
    for one in sorted(cards.values(), key=lambda card: (card.memory_gb, card.name)):
        if total <= one.memory:
            yield one.name


def _batch(setup: Setup, size: int) -> Setup:
    return replace(setup, micro_batch=size)


def _text(value: int | None) -> tuple[str, ...]:
    return () if value is None else (str(value),)
