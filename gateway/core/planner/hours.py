"""Arithmetic of a training, and how long cards need for it."""

from dataclasses import dataclass

from gateway.core.planner.cards import Card
from gateway.core.planner.figures import Figure, Notice, Source, above_zero, exactly, notice
from gateway.core.planner.model import Model
from gateway.core.planner.setup import Recompute, Setup
from gateway.core.planner.site import MeasuredMfu
from gateway.core.planner.strategies import Precision

OFFLOAD_MFU = 0.30  # more has not been reported with the optimizer in the memory of nodes
_OFFLOAD_LOW = 0.15
_SITE_BAND = 0.05  # of one's own measurement, from run to run
SECONDS_AN_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Mfu:
    """The share of the peak that is reached. `origin`: asked, site or usual; `jobs` it was
    measured on here, 0 where somebody wrote it into the site's file."""

    figure: Figure
    origin: str
    jobs: int = 0


@dataclass(frozen=True, slots=True)
class Speed:
    """`hours` without any waste; `step_seconds` of one step of all cards."""

    flops_per_token: Figure
    attention_share: float
    is_attention_counted: bool
    mfu: Mfu
    hours: Figure
    tokens_per_second: float
    step_seconds: float


def flops_per_token(model: Model) -> Figure:
    """With attention where the dimensions are known. The band is the part that is disputed:
    half of attention is masked in a causal model, and some count only that half."""
    size, plain = model.dimensions, 6.0 * model.params
    attention = 12.0 * size.layers * size.hidden * model.sequence
    if model.is_assumed:
        return Figure(plain, plain, plain + attention, "6 P", (Source.KAPLAN,))
    value = plain + attention
    return Figure(value, value - attention / 2, value, "6 P + 12 L h s", (Source.KAPLAN,))


def mfu_of(
    card: Card, setup: Setup, asked: float | None, *, measured: MeasuredMfu | None = None
) -> Mfu:
    """What was asked for, else what the site wrote down or measured on its jobs, else what such
    cards usually reach."""
    if asked is not None:
        share = above_zero("mfu", asked, most=1)
        return Mfu(exactly(share, "MFU", Source.ASKED), "asked")
    if card.measured_mfu is not None and not setup.strategy.offloads:
        own = card.measured_mfu
        band = own * _SITE_BAND
        high = min(1.0, own + band)
        return Mfu(Figure(own, own - band, high, "MFU", (Source.SITE,)), "site")
    is_alike = not setup.strategy.offloads and setup.precision is not Precision.FP32
    if measured is not None and is_alike:
        figure = Figure(measured.share, measured.low, measured.high, "MFU", (Source.SITE,))
        return Mfu(figure, "site", measured.jobs)
    low, high = card.mfu_low, card.mfu_high
    if setup.strategy.offloads:
        low, high = min(low, _OFFLOAD_LOW), min(high, OFFLOAD_MFU)
    return Mfu(Figure((low + high) / 2, low, high, "MFU", (Source.CARD_FILE,)), "usual")


def speed(model: Model, setup: Setup, card: Card, *, tokens: int, mfu: Mfu) -> Speed:
    work, share = flops_per_token(model), mfu.figure
    cluster = setup.gpus * card.peak(setup.precision)
    rate = cluster * share.value / work.value
    hours = Figure(
        tokens * work.value / (cluster * share.value) / SECONDS_AN_HOUR,
        tokens * work.low / (cluster * share.high) / SECONDS_AN_HOUR,
        tokens * work.high / (cluster * share.low) / SECONDS_AN_HOUR,
        f"D ({work.formula}) / (N · peak · MFU · 3600)",
        (*work.sources, *share.sources),
    )
    size = model.dimensions
    attention = 12.0 * size.layers * size.hidden * model.sequence
    return Speed(
        flops_per_token=work,
        attention_share=attention / (6.0 * model.params + attention),
        is_attention_counted=not model.is_assumed,
        mfu=mfu,
        hours=hours,
        tokens_per_second=rate,
        step_seconds=setup.gpus * setup.micro_batch * model.sequence / rate,
    )


def tokens_within(hours: float, found: Speed) -> float:
    """How many tokens the same cards train on in so many hours."""
    return hours * SECONDS_AN_HOUR * found.tokens_per_second


def gpus_within(hours: float, found: Speed, setup: Setup) -> int:
    """How many cards would do it in so many hours, if more cards lost nothing."""
    needed = setup.gpus * found.hours.value / hours
    return max(1, -(-int(needed * 1e6) // 1_000_000))


def notices(setup: Setup, card: Card, found: Speed) -> tuple[Notice, ...]:
    told = []
    share = found.mfu.figure.value
    if not found.is_attention_counted:
        percent = round(found.attention_share * 100)
        told.append(notice("attention_left_out", percent=percent))
    if setup.recompute is Recompute.FULL:
        told.append(notice("mfu_is_not_hfu"))
    if found.mfu.origin == "usual":
        told.append(notice("mfu_is_usual", card=card.name))
    if setup.strategy.offloads and share > OFFLOAD_MFU:
        told.append(notice("mfu_with_offload", percent=round(OFFLOAD_MFU * 100)))
    elif found.mfu.origin == "asked" and share > card.mfu_high:
        told.append(notice("mfu_above_usual", usual=round(card.mfu_high * 100), card=card.name))
    if card.is_uncertain:
        told.append(notice("card_uncertain", card=card.name))
    return tuple(told)
