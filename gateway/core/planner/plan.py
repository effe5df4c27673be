"""The whole plan of a training run, from what was asked for, the cards and the prices."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from gateway.core.credits import Credits
from gateway.core.planner import checkpoints, hours, money, verdict
from gateway.core.planner.cards import Card, Cards, find, precision_for
from gateway.core.planner.checkpoints import Checkpoint
from gateway.core.planner.figures import Notice, above_zero, notice, real, whole
from gateway.core.planner.hours import SECONDS_AN_HOUR, Speed
from gateway.core.planner.memory import Memory, memory
from gateway.core.planner.model import MOST_TOKENS, Dimensions, Model, of_dimensions, of_params
from gateway.core.planner.money import Crossing, Priced, Rate
from gateway.core.planner.setup import Recompute, Setup, setup
from gateway.core.planner.site import NOTHING_KNOWN, Site
from gateway.core.planner.verdict import Change, Fewest, Fit
from gateway.core.planner.waste import interruptions, waste, young
from gateway.errors import Refused

SPOT_HOURS = 6.0  # assumed where nothing is known


@dataclass(frozen=True, slots=True)
class Ask:
    """As typed: nothing is checked yet. Either `params` or all four dimensions. Without
    `spot_interrupted_hours` the site's own record counts, where there is one."""

    tokens: float
    gpu: str
    gpus: float
    strategy: str
    params: float | None = None
    layers: int | None = None
    hidden: int | None = None
    heads: int | None = None
    vocab: int | None = None
    sequence: int = 2048
    micro_batch: int = 1
    gpus_per_node: int = 8
    precision: str = "auto"
    recompute: str = Recompute.SELECTIVE.value
    mfu: float | None = None
    write_gbs: float = 1.0
    save_seconds: float | None = None
    keep: int = 2
    interrupted_hours: float = 24.0
    spot_interrupted_hours: float | None = None
    restart_minutes: float = 5.0
    host_gb: float | None = None
    within_hours: float | None = None
    budget: Credits | None = None


@dataclass(frozen=True, slots=True)
class Within:
    """What the asked hours would take: so many cards, or only so many tokens."""

    hours: float
    gpus: int
    tokens: float
    mfu: float  # that the asked cards and tokens would need


@dataclass(frozen=True, slots=True)
class Budget:
    """`per_card_hour` is what the amount comes to over these card-hours, in millionths;
    `kinds` are the ways to buy that it is enough for."""

    amount: Credits
    per_card_hour: Fraction
    kinds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Interrupted:
    """How often jobs bought at the rate `name` are preempted. `origin`: asked, site or assumed;
    `events` are what the site's record counts."""

    name: str
    hours: float
    origin: str
    events: int = 0


@dataclass(frozen=True, slots=True)
class Cost:
    """Per way to buy, with the waste of its own interruptions at its own best interval."""

    offers: tuple[Priced, ...]
    cheapest: Priced
    crossings: tuple[Crossing, ...]
    interrupted: tuple[Interrupted, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    model: Model
    setup: Setup
    card: Card
    tokens: int
    memory: Memory
    fit: Fit
    fits_host: bool | None
    fewest: tuple[Fewest, ...]
    changes: tuple[Change, ...]
    speed: Speed
    checkpoint: Checkpoint
    cost: Cost | None
    within: Within | None
    budget: Budget | None
    notices: tuple[Notice, ...]


def plan(ask: Ask, *, cards: Cards, rates: Sequence[Rate] = (), site: Site = NOTHING_KNOWN) -> Plan:
    """Pure. Refused, with the field, for what no training can be."""
    card, model = find(ask.gpu, cards), _model(ask)
    used = _setup(ask, card)
    tokens = whole("tokens", ask.tokens, most=MOST_TOKENS)
    share = hours.mfu_of(card, used, ask.mfu, measured=site.mfu)
    speed = hours.speed(model, used, card, tokens=tokens, mfu=share)
    needed = memory(model, used)
    saved = _checkpoint(ask, model, used, speed)
    cost = _cost(ask, used, speed, saved, rates=rates, site=site)
    return Plan(
        model=model,
        setup=used,
        card=card,
        tokens=tokens,
        memory=needed,
        fit=verdict.fit(needed.total, card),
        fits_host=_fits_host(ask, needed),
        fewest=verdict.fewest(model, used, card),
        changes=verdict.changes(model, used, card, cards),
        speed=speed,
        checkpoint=saved,
        cost=cost,
        within=_within(ask, speed, used),
        budget=_budget(ask, speed, used, cost),
        notices=_notices(model, used, card, speed, rates),
    )


def room(ask: Ask, *, cards: Cards) -> tuple[Card, Memory, Fit]:
    """Whether it fits, and nothing else: for where somebody types. Refused, with the field."""
    card, model = find(ask.gpu, cards), _model(ask)
    needed = memory(model, _setup(ask, card))
    return card, needed, verdict.fit(needed.total, card)


def _model(ask: Ask) -> Model:
    told = (ask.layers, ask.hidden, ask.heads)
    if all(value is None for value in told):
        if ask.params is None:
            raise Refused("plan_no_model", field="params")
        return of_params(ask.params, sequence=ask.sequence, vocab=ask.vocab)
    for field in ("layers", "hidden", "heads", "vocab"):
        if getattr(ask, field) is None:
            raise Refused("plan_dimensions", field=field)
    dimensions = Dimensions(ask.layers or 0, ask.hidden or 0, ask.heads or 0, ask.vocab or 0)
    return of_dimensions(dimensions, sequence=ask.sequence, params=ask.params)


def _setup(ask: Ask, card: Card) -> Setup:
    known = [one.value for one in Recompute]
    if ask.recompute not in known:
        raise Refused(
            "plan_recompute", field="recompute", name=ask.recompute, known=", ".join(known)
        )
    return setup(
        strategy=ask.strategy,
        gpus=ask.gpus,
        gpus_per_node=ask.gpus_per_node,
        micro_batch=ask.micro_batch,
        precision=precision_for(card, ask.precision),
        recompute=Recompute(ask.recompute),
    )


def _checkpoint(ask: Ask, model: Model, used: Setup, speed: Speed) -> Checkpoint:
    every = above_zero("interrupted_hours", ask.interrupted_hours, most=1e6)
    return checkpoints.checkpoint(
        model,
        used,
        write_gbs=ask.write_gbs,
        keep=ask.keep,
        between=every * SECONDS_AN_HOUR,
        restart=real("restart_minutes", ask.restart_minutes, most=1e5) * 60,
        step_seconds=speed.step_seconds,
        save_seconds=ask.save_seconds,
    )


def _cost(
    ask: Ask, used: Setup, speed: Speed, saved: Checkpoint, *, rates: Sequence[Rate], site: Site
) -> Cost | None:
    if ask.spot_interrupted_hours is not None:
        above_zero("spot_interrupted_hours", ask.spot_interrupted_hours, most=1e6)
    often = {rate.name: _interrupted(ask, rate, site) for rate in rates if rate.kind == "spot"}
    lost = {name: _waste(saved, one.hours) for name, one in often.items()}
    offers = tuple(
        money.priced(
            rate,
            gpus=used.gpus,
            hours=speed.hours.value,
            waste=lost[rate.name] if rate.kind == "spot" else saved.waste.value,
        )
        for rate in rates
    )
    cheapest = money.cheapest(offers)
    if cheapest is None:
        return None
    return Cost(offers, cheapest, money.crossings(offers), tuple(often.values()))


def _interrupted(ask: Ask, rate: Rate, site: Site) -> Interrupted:
    if ask.spot_interrupted_hours is not None:
        return Interrupted(rate.name, ask.spot_interrupted_hours, "asked")
    seen = site.preemptions.get(rate.name)
    hours_between = seen.hours_between if seen else None
    if seen is None or hours_between is None:
        return Interrupted(rate.name, SPOT_HOURS, "assumed")
    return Interrupted(rate.name, hours_between, "site", seen.events)


def _waste(saved: Checkpoint, hours_between: float) -> float:
    """At the best interval for such interruptions."""
    given = saved.given
    between = hours_between * SECONDS_AN_HOUR
    spot = interruptions(save=given.save, between=between, restart=given.restart)
    return waste(young(spot.save, spot.between), spot)


def _fits_host(ask: Ask, needed: Memory) -> bool | None:
    if ask.host_gb is None:
        return None
    return needed.host.value <= above_zero("host_gb", ask.host_gb, most=1e6) * 1e9


def _within(ask: Ask, speed: Speed, used: Setup) -> Within | None:
    if ask.within_hours is None:
        return None
    asked = above_zero("within_hours", ask.within_hours, most=1e7)
    return Within(
        hours=asked,
        gpus=hours.gpus_within(asked, speed, used),
        tokens=hours.tokens_within(asked, speed),
        mfu=speed.mfu.figure.value * speed.hours.value / asked,
    )


def _budget(ask: Ask, speed: Speed, used: Setup, cost: Cost | None) -> Budget | None:
    if ask.budget is None:
        return None
    if ask.budget <= 0:
        raise Refused("amount_not_positive", field="budget")
    card_hours = Fraction(speed.hours.value) * used.gpus
    offers = cost.offers if cost else ()
    enough = tuple(one.rate.name for one in offers if one.expected <= ask.budget)
    return Budget(ask.budget, ask.budget / card_hours, enough)


def _notices(
    model: Model, used: Setup, card: Card, speed: Speed, rates: Sequence[Rate]
) -> tuple[Notice, ...]:
    found = list(hours.notices(used, card, speed))
    if model.is_assumed:
        size = model.dimensions
        found.append(notice("dimensions_assumed", layers=size.layers, hidden=size.hidden))
    if used.precision == "fp16" and not card.bf16:
        found.append(notice("fp16_for_bf16", card=card.name))
    if used.strategy.is_rough:
        found.append(notice("strategy_rough", strategy=used.strategy.name))
    found += [
        notice("preempted_is_free", qos=rate.name) for rate in rates if rate.is_free_when_preempted
    ]
    return tuple(found)
