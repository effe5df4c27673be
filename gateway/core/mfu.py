"""Model FLOPs utilisation: what share of the cards' peak the model's own arithmetic took.

MFU = tokens a second x FLOPs a token / (cards x peak FLOP/s of a card), after PaLM (arXiv
2204.02311, appendix B). FLOPs a token are those of one forward and one backward pass; what is
computed again to save memory does not count, so MFU falls when a run recomputes.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from gateway.core.planner.cards import Card, Cards

PASSES = 6  # 2 FLOPs a parameter forward, 4 backward (Kaplan 2020, arXiv 2001.08361)


@dataclass(frozen=True, slots=True)
class Model:
    """What the script told of its model. `exact`: it gave the FLOPs itself; else they are
    6 x parameters, which leaves out attention."""

    flops_per_token: float
    exact: bool
    params: float | None = None


def model_of(facts: Mapping[str, object]) -> Model | None:
    """None where the script said neither `flops_per_token` nor `params`."""
    flops, params = facts.get("flops_per_token"), facts.get("params")
    known = params if isinstance(params, int | float) and params > 0 else None
    if isinstance(flops, int | float) and flops > 0:
        return Model(float(flops), exact=True, params=known)
    return Model(PASSES * float(known), exact=False, params=known) if known else None


def card_of(gpu_type: str | None, cards: Cards) -> Card | None:
    """The card behind a cluster's GPU type. Of several of one name (40 and 80 GB) the first: they
    differ in memory. None where their peaks differ, or nobody knows the type: a wrong peak would
    be a wrong figure."""
    if not gpu_type:
        return None
    name = gpu_type.casefold().replace("_", "-")
    if name in cards:
        return cards[name]
    fits = [card for card in cards.values() if gpu_type.casefold() in card.resources]
    peaks = {card.tflops_16bit for card in fits}
    return fits[0] if len(peaks) == 1 else None


def mfu(tokens_per_second: float, model: Model, *, cards: int, peak_flops: float) -> float | None:
    """A share, normally below 1; above it the script's numbers or the peak are wrong. None without
    cards."""
    if cards <= 0 or peak_flops <= 0:
        return None
    return tokens_per_second * model.flops_per_token / (cards * peak_flops)
