"""How large a checkpoint is, where it fits, how long it takes, how often to write it."""

from dataclasses import dataclass

from gateway.core.planner.figures import Figure, Source, above_zero, exactly, whole
from gateway.core.planner.model import Model
from gateway.core.planner.setup import Setup
from gateway.core.planner.strategies import Precision
from gateway.core.planner.waste import Interruptions, daly, interruptions, waste, young

# A signal to save may come a minute early, and the step that runs must end first.
_SIGNAL_MARGIN_SECONDS = 60
_LEAST_SAVE_SECONDS = 0.001  # of a toy: not even an empty file is written faster


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Bytes and seconds. `interval` is Young's; `signal_lead` is what to ask Slurm for as the
    time between the signal and the end."""

    size: Figure
    disk: Figure
    save: Figure
    interval: Figure
    interval_daly: float
    waste: Figure
    given: Interruptions
    signal_lead: int


def size(model: Model, setup: Setup) -> Figure:
    """Weights and Adam's two moments in 32 bits; some frameworks add the 16-bit weights."""
    low, high = 12.0 * model.params, 14.0 * model.params
    if setup.precision is Precision.FP32:
        return exactly(low, "12 P", Source.MEASURED)
    if setup.strategy.source in {Source.TORCH_AMP, Source.TORCH_FSDP}:
        return Figure(low, low, high, "12 P", (Source.MEASURED,))
    return Figure(high, low, high, "14 P", (Source.ARITHMETIC, Source.MEASURED))


def checkpoint(
    model: Model,
    setup: Setup,
    *,
    write_gbs: float,
    keep: int,
    between: float,
    restart: float,
    step_seconds: float,
    save_seconds: float | None = None,
) -> Checkpoint:
    """`save_seconds` where it was measured; else the size over the speed of the storage."""
    bytes_each = size(model, setup)
    speed = above_zero("write_gbs", write_gbs, most=1e5) * 1e9
    save = _over(bytes_each, speed)
    if save_seconds is not None:
        save = exactly(above_zero("save_seconds", save_seconds, most=1e12), "C", Source.ASKED)
    given = interruptions(
        save=max(save.value, _LEAST_SAVE_SECONDS), between=between, restart=restart
    )
    best = young(given.save, given.between)
    copies = whole("keep", keep, most=1e6)
    lead = int(step_seconds + save.high + _SIGNAL_MARGIN_SECONDS) + 1
    return Checkpoint(
        size=bytes_each,
        disk=_times(bytes_each, copies + 1),
        save=save,
        interval=exactly(best, "√(2 C M)", Source.YOUNG),
        interval_daly=daly(given.save, given.between),
        waste=exactly(waste(best, given), "C/τ + (τ/2 + R)/M", Source.YOUNG),
        given=given,
        signal_lead=lead,
    )


def _over(figure: Figure, speed: float) -> Figure:
    low, high = figure.low / speed, figure.high / speed
    return Figure(figure.value / speed, low, high, "size / speed of writing", figure.sources)


def _times(figure: Figure, count: int) -> Figure:
    return Figure(
        figure.value * count,
        figure.low * count,
        figure.high * count,
        "(k + 1) · size",
        (Source.ARITHMETIC,),
    )
