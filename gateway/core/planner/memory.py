"""Memory of a card by its parts, and of a node. See docs/planner.md for each formula."""

from collections.abc import Iterable
from dataclasses import dataclass

from gateway.core.planner.activations import activations, logits
from gateway.core.planner.figures import Figure, Source, exactly
from gateway.core.planner.model import Model
from gateway.core.planner.setup import Setup
from gateway.core.planner.strategies import Gathers, Host, Precision, Share

# DeepSpeed's estimator leaves this much room in the memory of nodes.
_HOST_ROOM = 1.5
_ROUGH = 0.25  # where a strategy is only taken to be like another one


@dataclass(frozen=True, slots=True)
class Reserve:
    """What a device takes that is no tensor of ours: low, usual and high."""

    context: tuple[float, float, float] = (1e9, 1.5e9, 2e9)
    fragmentation: tuple[float, float, float] = (0.05, 0.075, 0.10)


CARD = Reserve()
NOTHING = Reserve((0, 0, 0), (0, 0, 0))  # a processor's memory, for measuring


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes of one card. `overheads` are the parts of `overhead`; `host` is of one node."""

    weights: Figure
    gradients: Figure
    optimizer: Figure
    activations: Figure
    logits: Figure
    overheads: tuple[tuple[str, Figure], ...]
    host: Figure

    @property
    def overhead(self) -> Figure:
        return _sum(figure for _, figure in self.overheads)

    @property
    def parts(self) -> tuple[tuple[str, Figure], ...]:
        return (
            ("weights", self.weights),
            ("gradients", self.gradients),
            ("optimizer", self.optimizer),
            ("activations", self.activations),
            ("logits", self.logits),
            ("overhead", self.overhead),
        )

    @property
    def total(self) -> Figure:
        return _sum(figure for _, figure in self.parts)

    @property
    def state(self) -> float:
        """Weights, gradients and optimizer: what a strategy divides."""
        return self.weights.value + self.gradients.value + self.optimizer.value


def memory(model: Model, setup: Setup, *, reserve: Reserve = CARD) -> Memory:
    """The peak with gradients of an earlier micro-batch present, as accumulation has it."""
    found = _shares(setup)
    weights, gradients, optimizer = (_state(share, model, setup) for share in found)
    acts, words = activations(model, setup), logits(model, setup)
    over = _buffers(model, setup)
    before = _sum([weights, gradients, optimizer, acts, words, *(figure for _, figure in over)])
    over = (*over, ("context", _context(reserve)), ("fragmentation", _holes(before, reserve)))
    return Memory(weights, gradients, optimizer, acts, words, over, host(model, setup))


def host(model: Model, setup: Setup) -> Figure:
    """Of one node, without what data loaders take."""
    kind, params = setup.strategy.host, model.params
    if kind is Host.COPY:
        return exactly(4.0 * params * setup.on_a_node, "4 P G", Source.ARITHMETIC)
    if kind is Host.ROOMY_COPY:
        value = 4.0 * params * setup.on_a_node * _HOST_ROOM
        return exactly(value, "4 P G · 1.5", Source.DEEPSPEED)
    if kind is Host.LAYERS:
        value = 4.0 * model.largest_layer * setup.on_a_node * _HOST_ROOM
        return exactly(value, "4 ℓ G · 1.5", Source.DEEPSPEED)
    share = setup.on_a_node / setup.gpus  # of the fullest node
    if kind is Host.BUILT:
        value = params * max(4.0 * setup.on_a_node, 16 * share) * _HOST_ROOM
        return exactly(value, "max(4 P G, 16 P G / N) · 1.5", Source.DEEPSPEED)
    each = 18 if kind is Host.ALL else 16
    value = params * each * share * _HOST_ROOM
    return exactly(value, f"{each} P G / N · 1.5", Source.DEEPSPEED)


def _shares(setup: Setup) -> tuple[Share, Share, Share]:
    """In 32 bits there is no second copy of the weights, whoever shares them out."""
    kind = setup.strategy
    if setup.precision is not Precision.FP32:
        return kind.weights, kind.gradients, kind.optimizer
    return _in_full(kind.weights, 4), _in_full(kind.gradients, 4), _in_full(kind.optimizer, 8)


def _in_full(share: Share, width: float) -> Share:
    return Share(width if share.each else 0, width if share.shared else 0)


def _state(share: Share, model: Model, setup: Setup) -> Figure:
    value = model.params * (share.each + share.shared / setup.sharing)
    formula = "0"
    if share.each:
        formula = f"{share.each:g} P"
    elif share.shared:
        formula = f"{share.shared:g} P / {'G' if setup.strategy.within_node else 'N'}"
    room = value * _ROUGH if setup.strategy.is_rough else 0
    return Figure(value, value - room, value + room, formula, (setup.strategy.source,))


def _buffers(model: Model, setup: Setup) -> tuple[tuple[str, Figure], ...]:
    kind, width = setup.strategy, 4 if setup.precision is Precision.FP32 else 2
    found = []
    if kind.gathers is Gathers.LAYER:
        value = 2.0 * width * model.largest_layer
        found.append(("gathered", exactly(value, f"{2 * width} ℓ", Source.DEEPSPEED)))
    elif kind.gathers is Gathers.BLOCK and setup.sharing > 1:
        value = 2.0 * width * model.wrapped
        found.append(("gathered", exactly(value, f"{2 * width} β", Source.TORCH_FSDP)))
    if kind.step and setup.precision is not Precision.FP32:
        value = kind.step * model.params / setup.sharing
        found.append(("step", exactly(value, f"{kind.step:g} P / N", Source.DEEPSPEED)))
    if kind.bucket:
        value = kind.bucket * model.params
        # gradient_as_bucket_view saves it: then there is none.
        figure = Figure(value, 0, value, f"{kind.bucket:g} P", (Source.TORCH_DDP,))
        found.append(("buckets", figure))
    if kind.bucket_elements:
        # One buffer of this size, however small the model is.
        value = width * kind.bucket_elements
        found.append(
            (
                "buckets",
                exactly(value, f"{width} · {kind.bucket_elements:g}", Source.DEEPSPEED_BUCKET),
            )
        )
    return tuple(found)


def _context(reserve: Reserve) -> Figure:
    low, usual, high = reserve.context
    return Figure(usual, low, high, "1.5 GB", (Source.COMMON,))


def _holes(before: Figure, reserve: Reserve) -> Figure:
    low, usual, high = reserve.fragmentation
    return Figure(
        before.value * usual,
        before.low * low,
        before.high * high,
        f"{usual:g} · (all the rest)",
        (Source.COMMON,),
    )


def _sum(figures: Iterable[Figure]) -> Figure:
    every = tuple(figures)
    sources = tuple(dict.fromkeys(source for one in every for source in one.sources))
    return Figure(
        sum(one.value for one in every),
        sum(one.low for one in every),
        sum(one.high for one in every),
        "sum",
        sources,
    )
