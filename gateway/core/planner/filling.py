"""From a plan to the submit form: the template of its strategy, the cards that this site has, the
time and the checkpoints. And back: which strategy a form's template trains with."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from gateway.core.durations import format_time_limit
from gateway.core.offer import GpuKind, GroupChoice, Offer, PartitionChoice
from gateway.core.planner.cards import Card, Cards
from gateway.core.planner.figures import Notice, notice
from gateway.core.planner.hours import SECONDS_AN_HOUR
from gateway.core.planner.plan import Plan
from gateway.core.planner.setup import Recompute, Setup

# The templates that train so, the plainest first, with their own fields where they have such.
_ZERO = "deepspeed-zero3"
_BY_STRATEGY: Mapping[str, tuple[tuple[str, Mapping[str, str]], ...]] = {
    "single": (("single-gpu", {}),),
    "ddp": (("ddp", {}),),
    "zero1": ((_ZERO, {"stage": "1", "offload": "none"}),),
    "zero2": ((_ZERO, {"stage": "2", "offload": "none"}),),
    "zero2-offload": ((_ZERO, {"stage": "2", "offload": "optimizer"}),),
    "zero3": ((_ZERO, {"stage": "3", "offload": "none"}),),
    "zero3-offload": ((_ZERO, {"stage": "3", "offload": "optimizer"}),),
    "zero3-offload-all": ((_ZERO, {"stage": "3", "offload": "both"}),),
    "fsdp": (("fsdp", {}), ("hf-fsdp", {})),
    "fsdp-hybrid": (("fsdp", {}), ("hf-fsdp", {})),
    "colossal-gemini": (("colossalai", {"plugin": "gemini", "offload": "none"}),),
}
_LONGEST_INTERVAL = 168.0


@dataclass(frozen=True, slots=True)
class Place:
    """Where this person may have such cards."""

    group: GroupChoice
    partition: PartitionChoice
    kind: GpuKind


@dataclass(frozen=True, slots=True)
class Filled:
    """`fields` are those of the form, `values` the template's own where it has them; `notices`
    say what the plan and the form do not have in common."""

    fields: Mapping[str, str]
    values: Mapping[str, str]
    notices: tuple[Notice, ...]


def fill(plan: Plan, offer: Offer, templates: Collection[str]) -> Filled:
    template, values = template_for(plan.setup.strategy.name, templates)
    notices = [] if template else [notice("no_template", strategy=plan.setup.strategy.name)]
    if template and plan.setup.strategy.within_node:
        notices.append(notice("shard_yourself"))
    fields = {"template": template} if template else {}
    place = place_for(plan.card, offer)
    if place is None:
        notices.append(notice("no_such_card", card=plan.card.name))
        return Filled(fields, values, tuple(notices))
    nodes, each = _shape(plan.setup, place)
    fields |= {
        "group": place.group.name,
        "partition": place.partition.name,
        "gpu_type": place.kind.name,
        "nodes": str(nodes),
        "nproc_per_node": str(each),
    }
    if nodes * each != plan.setup.gpus:
        notices.append(notice("other_cards", asked=plan.setup.gpus, filled=nodes * each))
    if nodes > place.kind.nodes:
        notices.append(notice("too_few_nodes", nodes=place.kind.nodes))
    minutes, wanted = _minutes(plan, place)
    fields["time_limit"] = format_time_limit(minutes).removeprefix("0-")
    if wanted > minutes:
        notices.append(notice("several_stretches", stretches=math.ceil(wanted / minutes)))
    return Filled(fields, values | _values(plan), tuple(notices))


def template_for(strategy: str, templates: Collection[str]) -> tuple[str | None, dict[str, str]]:
    """The first template that there is; None where none of them trains so."""
    for name, values in _BY_STRATEGY[strategy]:
        if name in templates:
            return name, dict(values)
    return None, {}


def strategy_of(template: str, values: Mapping[str, str], *, planned: str) -> str | None:
    """What the form trains with: the planned strategy where the template has it and its fields do
    not say another. None for a template that the planner knows nothing of."""
    known = [
        (strategy, wanted)
        for strategy, ways in _BY_STRATEGY.items()
        for name, wanted in ways
        if name == template
    ]
    known.sort(key=lambda one: one[0] != planned)
    for strategy, wanted in known:
        if all(values.get(name, value) == value for name, value in wanted.items()):
            return strategy
    return None


def place_for(card: Card, offer: Offer) -> Place | None:
    """In the default group and partition where they have such cards, and where most of them are
    otherwise; a closed partition last."""
    found = [
        Place(group, partition, kind)
        for group in offer.groups
        for partition in group.partitions
        for kind in partition.gpus
        if is_called(card, kind.name)
    ]
    return max(
        found,
        key=lambda one: (
            one.partition.is_up,
            one.group.is_default,
            one.partition.is_default,
            one.kind.nodes * one.kind.per_node,
        ),
        default=None,
    )


def cards_here(cards: Cards, offer: Offer) -> tuple[Card, ...]:
    """Those that this person may use. A site's name may be that of several cards."""
    return tuple(card for card in cards.values() if place_for(card, offer) is not None)


def card_called(name: str, cards: Cards, *, planned: Card) -> Card:
    """What a partition's type of cards is; the planned one where it may be that, or is unknown."""
    if is_called(planned, name):
        return planned
    return next((card for card in cards.values() if is_called(card, name)), planned)


def is_called(card: Card, name: str) -> bool:
    return _plain(name) in {_plain(own) for own in (card.name, *card.resources)}


def _plain(name: str) -> str:
    return name.casefold().replace("_", "-")


def _shape(setup: Setup, place: Place) -> tuple[int, int]:
    """As few nodes as hold them, the same number on each, and no more than the plan has there."""
    nodes = -(-setup.gpus // min(setup.gpus_per_node, place.kind.per_node))
    return nodes, -(-setup.gpus // nodes)


def _minutes(plan: Plan, place: Place) -> tuple[int, int]:
    """The time limit, and what the upper end of the hours would take."""
    wanted = max(1, math.ceil(plan.speed.hours.high * 60))
    qos = place.partition.default_qos
    longest = qos.limits.max_minutes if qos else place.partition.max_minutes
    most = longest or 366 * 24 * 60
    return min(wanted, most), wanted


def _values(plan: Plan) -> dict[str, str]:
    """What a template may ask besides its strategy. The interval in hours, to a hundredth."""
    hours = plan.checkpoint.interval.value / SECONDS_AN_HOUR
    used = plan.setup
    return {
        "checkpoint_hours": f"{min(max(round(hours, 2), 0.05), _LONGEST_INTERVAL):g}",
        "precision": used.precision.value,
        "micro_batch": str(used.micro_batch),
        "activation_checkpointing": "true" if used.recompute is Recompute.FULL else "",
    }
