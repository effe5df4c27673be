"""How a strategy divides the state of a model, in bytes a parameter."""

from dataclasses import dataclass
from enum import StrEnum

from gateway.core.planner.figures import Source
from gateway.errors import Refused


class Precision(StrEnum):
    """16 bits are always mixed precision: the optimizer keeps 32."""

    BF16 = "bf16"
    FP16 = "fp16"
    FP32 = "fp32"


class Gathers(StrEnum):
    """What is put together on the card for the time it is needed."""

    NOTHING = "nothing"
    LAYER = "layer"  # DeepSpeed: the largest module
    BLOCK = "block"  # FSDP: a wrapped block, and the root with the embedding


class Host(StrEnum):
    """What the memory of a node holds."""

    COPY = "copy"  # the model as each rank builds it
    ROOMY_COPY = "roomy_copy"  # the same with the room that DeepSpeed's estimator leaves
    BUILT = "built"  # the optimizer, or the model as each rank builds it first
    OPTIMIZER = "optimizer"
    ALL = "all"
    LAYERS = "layers"


@dataclass(frozen=True, slots=True)
class Share:
    """Bytes a parameter: `each` on every card, `shared` divided among the cards."""

    each: float = 0
    shared: float = 0


@dataclass(frozen=True, slots=True)
class Strategy:
    """`step` is the 32-bit copy of gradients that lives while the optimizer steps. `bucket`:
    bytes a parameter in buckets of all gradients; `bucket_most`: where buckets have a size."""

    name: str
    weights: Share
    gradients: Share
    optimizer: Share
    source: Source
    gathers: Gathers = Gathers.NOTHING
    step: float = 0
    bucket: float = 0
    bucket_elements: float = 0
    host: Host = Host.COPY
    within_node: bool = False
    offloads: bool = False
    is_rough: bool = False


_DS_BUCKET = 5e8  # elements: reduce_bucket_size as DeepSpeed has it by default
_FULL_AMP = (Share(4), Share(4), Share(8))
_NONE = Share()

STRATEGIES: tuple[Strategy, ...] = (
    Strategy("single", *_FULL_AMP, Source.TORCH_AMP),
    Strategy("ddp", *_FULL_AMP, Source.TORCH_AMP, bucket=4),
    Strategy(
        "zero1",
        *(Share(2), Share(2), Share(0, 12)),
        Source.ZERO,
        step=4,
        bucket_elements=_DS_BUCKET,
        host=Host.ROOMY_COPY,
    ),
    Strategy(
        "zero2",
        *(Share(2), Share(0, 2), Share(0, 12)),
        Source.ZERO,
        step=4,
        bucket_elements=_DS_BUCKET,
        host=Host.ROOMY_COPY,
    ),
    Strategy(
        "zero2-offload",
        *(Share(2), _NONE, _NONE),
        Source.DEEPSPEED,
        bucket_elements=_DS_BUCKET,
        host=Host.BUILT,
        offloads=True,
    ),
    Strategy(
        "zero3",
        *(Share(0, 2), Share(0, 2), Share(0, 12)),
        Source.ZERO,
        Gathers.LAYER,
        step=2,
        bucket_elements=_DS_BUCKET,
        host=Host.LAYERS,
    ),
    Strategy(
        "zero3-offload",
        *(Share(0, 2), _NONE, _NONE),
        Source.DEEPSPEED,
        Gathers.LAYER,
        bucket_elements=_DS_BUCKET,
        host=Host.OPTIMIZER,
        offloads=True,
    ),
    Strategy(
        "zero3-offload-all",
        *(_NONE, _NONE, _NONE),
        Source.DEEPSPEED,
        Gathers.LAYER,
        bucket_elements=_DS_BUCKET,
        host=Host.ALL,
        offloads=True,
    ),
    Strategy("fsdp", Share(0, 4), Share(0, 4), Share(0, 8), Source.TORCH_FSDP, Gathers.BLOCK),
    Strategy(
        "fsdp-hybrid",
        *(Share(0, 4), Share(0, 4), Share(0, 8)),
        Source.TORCH_FSDP,
        Gathers.BLOCK,
        within_node=True,
    ),
    Strategy(
        "colossal-gemini",
        *(Share(0, 2), Share(0, 2), Share(0, 12)),
        Source.GEMINI,
        Gathers.LAYER,
        step=2,
        bucket_elements=_DS_BUCKET,
        host=Host.LAYERS,
        is_rough=True,
    ),
)
NAMES = tuple(one.name for one in STRATEGIES)


def strategy(name: str) -> Strategy:
    """Refused, with those that there are: plan_strategy."""
    for one in STRATEGIES:
        if one.name == name.strip().casefold():
            return one
    raise Refused("plan_strategy", field="strategy", name=name, known=", ".join(NAMES))
