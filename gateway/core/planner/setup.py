"""How the model is trained: cards, batch, precision, what is computed twice."""

from dataclasses import dataclass, replace
from enum import StrEnum

from gateway.core.planner import strategies
from gateway.core.planner.figures import whole
from gateway.core.planner.strategies import Precision, Strategy
from gateway.errors import Refused

MOST_GPUS = 100_000


class Recompute(StrEnum):
    """What of the forward pass is computed again in the backward pass."""

    NONE = "none"
    SELECTIVE = "selective"  # the attention: also what FlashAttention keeps
    FULL = "full"  # checkpointing of every layer


@dataclass(frozen=True, slots=True)
class Setup:
    """All cards are data-parallel. `micro_batch` is per card."""

    strategy: Strategy
    gpus: int
    gpus_per_node: int
    micro_batch: int
    precision: Precision
    recompute: Recompute

    @property
    def nodes(self) -> int:
        return -(-self.gpus // self.gpus_per_node)

    @property
    def on_a_node(self) -> int:
        return min(self.gpus, self.gpus_per_node)

    @property
    def sharing(self) -> int:
        """Among how many cards the shared state is divided."""
        return self.on_a_node if self.strategy.within_node else self.gpus

    def over(self, gpus: int) -> "Setup":
        return replace(self, gpus=gpus)


def setup(
    *,
    strategy: str,
    gpus: float,
    gpus_per_node: float,
    micro_batch: float,
    precision: Precision,
    recompute: Recompute,
) -> Setup:
    """Refused, with the field."""
    found = Setup(
        strategies.strategy(strategy),
        whole("gpus", gpus, most=MOST_GPUS),
        whole("gpus_per_node", gpus_per_node, most=1024),
        whole("micro_batch", micro_batch, most=1e6),
        precision,
        recompute,
    )
    if found.strategy.name == "single" and found.gpus > 1:
        raise Refused("plan_single", field="gpus", gpus=found.gpus)
    return found
