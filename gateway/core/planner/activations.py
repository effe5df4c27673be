"""What the forward pass keeps for the backward pass, on one card."""

from dataclasses import replace

from gateway.core.planner.figures import Figure, Source
from gateway.core.planner.model import Model
from gateway.core.planner.setup import Recompute, Setup
from gateway.core.planner.strategies import Precision

# Gated layers and grouped heads differ by this much from the transformer of the formula.
_BAND, _BAND_ASSUMED = 0.15, 0.35


def activations(model: Model, setup: Setup) -> Figure:
    each, kept = layer(model, setup, attention=True), layer(model, setup, attention=False)
    layers = model.dimensions.layers
    if setup.recompute is Recompute.NONE:
        return _figure(model, layers * each, "L s b h (34 + 5 a s / h)")
    if setup.recompute is Recompute.SELECTIVE:
        return _figure(model, layers * kept, "L · 34 s b h")
    return _figure(model, inputs(model, setup) + kept, "L · 2 s b h + 34 s b h")


def layer(model: Model, setup: Setup, *, attention: bool) -> float:
    """One layer. In bytes an element of s·b·h: 16 tensors and two masks of one byte; with the
    matrix of attention, two more a head and its mask. That is 34 and 5 in 16 bits."""
    size = model.dimensions
    width = width_of(setup)
    bytes_each = 16 * width + 2.0
    if attention:
        bytes_each += (2 * width + 1) * size.heads * model.sequence / size.hidden
    return model.sequence * setup.micro_batch * size.hidden * bytes_each


def inputs(model: Model, setup: Setup) -> float:
    """What checkpointing keeps: the input of each layer."""
    size = model.dimensions
    return float(size.layers * width_of(setup) * model.sequence * setup.micro_batch * size.hidden)


def logits(model: Model, setup: Setup) -> Figure:
    """In 16 bits the logits and their copy in 32, up to twice that where the loss keeps more
    copies; in 32 bits logits, their logarithm of the softmax, and the gradient."""
    full = setup.precision is Precision.FP32
    each = 12 if full else 6
    value = float(model.sequence * setup.micro_batch * model.dimensions.vocab * each)
    found = _figure(model, value, f"{each} s b V")
    sources = (*found.sources, Source.MEASURED)
    return replace(found, high=found.high * (1 if full else 2), sources=sources)


def width_of(setup: Setup) -> int:
    return 4 if setup.precision is Precision.FP32 else 2


def _figure(model: Model, value: float, formula: str) -> Figure:
    band = _BAND_ASSUMED if model.is_assumed else _BAND
    sources = (Source.KORTHIKANTI, Source.ASSUMED) if model.is_assumed else (Source.KORTHIKANTI,)
    return Figure(value, value * (1 - band), value * (1 + band), formula, sources)
