"""Plans for tests: the cards as they are shipped, and the model of the claims."""

from dataclasses import replace
from typing import Any

from gateway.core.planner import model as models
from gateway.core.planner.memory import NOTHING, Memory, memory
from gateway.core.planner.model import Dimensions, Model
from gateway.core.planner.plan import Ask
from gateway.core.planner.setup import Recompute, Setup, setup
from gateway.core.planner.strategies import Precision
from gateway.services.plan import load_cards

CARDS = load_cards()
# About 9.7 billion parameters with the vocabulary.
TEN_BILLION = Dimensions(layers=48, hidden=4096, heads=32, vocab=50_000)


def ask(**given: Any) -> Ask:
    """10 billion parameters and 12 billion tokens on 16 cards, as the claims have it."""
    usual: dict[str, Any] = {"params": 10e9, "tokens": 12e9, "gpu": "a100-80g", "gpus": 16}
    return Ask(**(usual | {"strategy": "zero3", "mfu": 0.58} | given))


def model(params: float, *, largest_layer: int | None = None, sequence: int = 2048) -> Model:
    found = models.of_params(params, sequence=sequence)
    return found if largest_layer is None else replace(found, largest_layer=largest_layer)


def on(strategy: str, gpus: int, **given: Any) -> Setup:
    usual: dict[str, Any] = {"gpus_per_node": 8, "micro_batch": 1, "precision": Precision.BF16}
    usual |= {"recompute": Recompute.SELECTIVE}
    return setup(strategy=strategy, gpus=gpus, **(usual | given))


def bare(found: Model, used: Setup) -> Memory:
    """Without what a device takes for itself."""
    return memory(found, used, reserve=NOTHING)
