"""The model that is trained: its parameters, and the dimensions that activations come from."""

from dataclasses import dataclass

from gateway.core.planner.figures import Figure, Source, exactly, whole
from gateway.errors import Refused

MOST_PARAMS = 1e14
MOST_TOKENS = 1e17
_HEAD = 128  # the size of a head that common models have
_VOCAB = 50_000
# Parameters that are told may differ from those of the dimensions: gated layers, grouped heads.
_TOLERANCE = 0.5


@dataclass(frozen=True, slots=True)
class Dimensions:
    layers: int
    hidden: int
    heads: int
    vocab: int

    @property
    def block(self) -> int:
        """Parameters of one layer: attention 4 h², the two linear ones 8 h², biases and norms."""
        return 12 * self.hidden**2 + 13 * self.hidden


@dataclass(frozen=True, slots=True)
class Model:
    """`largest_layer` are the parameters of the largest single module, as DeepSpeed gathers
    them; `wrapped` those of a layer and of what lies around the layers, as FSDP does.
    `is_assumed`: the dimensions were not told."""

    params: int
    dimensions: Dimensions
    sequence: int
    largest_layer: int
    wrapped: int
    is_assumed: bool
    counted: Figure


def of_dimensions(dimensions: Dimensions, *, sequence: int, params: float | None = None) -> Model:
    """Refused, with the field: what is no shape, or `params` that another model would have."""
    _check(dimensions)
    length = whole("sequence", sequence, most=1e8)
    formula = "P = L(12 h² + 13 h) + (V + s) h"
    found = dimensions.layers * dimensions.block
    found += (dimensions.vocab + length) * dimensions.hidden
    if params is None:
        if found > MOST_PARAMS:
            raise Refused("plan_range", field="layers", least="1", most=f"{MOST_PARAMS:g}")
        return _made(found, dimensions, length, exactly(found, formula, Source.MEGATRON))
    told = whole("params", params, least=1000, most=MOST_PARAMS)
    if not 1 - _TOLERANCE <= told / found <= 1 / (1 - _TOLERANCE):
        raise Refused(
            "plan_params_differ", field="params", told=f"{told:.3g}", found=f"{found:.3g}"
        )
    return _made(told, dimensions, length, exactly(told, "P", Source.ASKED))


def of_params(params: float, *, sequence: int, vocab: int | None = None) -> Model:
    """The dimensions are assumed: 128 a head, as many layers as heads, as GPT-3's have."""
    told = whole("params", params, least=1000, most=MOST_PARAMS)
    length = whole("sequence", sequence, most=1e8)
    heads = max(1, round((told / (12 * _HEAD**2)) ** (1 / 3)))
    hidden = _HEAD * heads
    if 12 * hidden**2 > told:  # a toy: one layer of few heads
        heads, hidden = 1, max(1, int((told / 12) ** 0.5))
    words = _VOCAB if vocab is None else whole("vocab", vocab, most=1e8)
    dimensions = Dimensions(max(1, told // (12 * hidden**2)), hidden, heads, words)
    figure = exactly(told, "P", Source.ASKED)
    return _made(told, dimensions, length, figure, is_assumed=True)


def _made(
    params: int, dimensions: Dimensions, sequence: int, counted: Figure, *, is_assumed: bool = False
) -> Model:
    embedding = dimensions.vocab * dimensions.hidden
    return Model(
        params=params,
        dimensions=dimensions,
        sequence=sequence,
        largest_layer=min(params, max(embedding, 4 * dimensions.hidden**2)),
        wrapped=min(params, embedding + dimensions.block),
        is_assumed=is_assumed,
        counted=counted,
    )


def _check(dimensions: Dimensions) -> None:
    whole("layers", dimensions.layers, most=1e5)
    whole("hidden", dimensions.hidden, most=1e6)
    whole("heads", dimensions.heads, most=1e5)
    whole("vocab", dimensions.vocab, most=1e8)
    if dimensions.hidden % dimensions.heads:
        raise Refused("plan_heads", field="heads", heads=dimensions.heads, hidden=dimensions.hidden)
