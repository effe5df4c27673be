"""The past replayed against a proposal, as its page shows it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from flask import request

from gateway.core.policy_change import Item, Of
from gateway.core.what_if import Effects, GroupEffects, LimitEffects, NotReplayed, WhatIf
from gateway.services import what_if
from gateway.web.change_texts import KIND_TEXTS
from gateway.web.deps import deps
from gateway.web.texts import gettext
from gateway.web.views import changeview

DAYS = 30
MOST_DAYS = 3650
MOST_GROUPS = 50


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a bar, in percent."""

    kind: str
    at: float
    wide: float


@dataclass(frozen=True, slots=True)
class LimitLine:
    object: str
    word: str
    before: str
    after: str
    refused: int
    later: int
    later_hours: str
    sooner: int
    sooner_hours: str


@dataclass(frozen=True, slots=True)
class GroupLine:
    group: str
    runs: int
    refused: int
    later: int
    later_hours: str
    sooner: int
    sooner_hours: str
    bar: list[Part]
    label: str
    cost_before: int | None
    cost_after: int | None


@dataclass(frozen=True, slots=True)
class View:
    runs: int
    refused: int
    later: int
    sooner: int
    limits: list[LimitLine]
    groups: list[GroupLine]
    more: int
    has_costs: bool
    not_replayed: list[str]
    unpriced: int
    history_until: datetime | None


@dataclass(frozen=True, slots=True)
class Replayed:
    view: View | None = None
    trouble: str = ""


NOTHING = Replayed()


def asked(items: Sequence[Item]) -> Replayed:
    """The last `days` days, as typed."""
    typed, have = request.args.get("days", "").strip(), deps()
    right = typed.isascii() and typed.isdigit() and len(typed) <= len(str(MOST_DAYS))
    if not right or not 1 <= int(typed) <= MOST_DAYS:
        return Replayed(trouble=gettext("Type days from 1 to %(most)s.", most=MOST_DAYS))
    found = what_if.replay(
        items,
        days=int(typed),
        history=have.settings.home / "history",
        read=have.read,
        now=have.clock(),
    )
    return Replayed(view(found))


def view(found: WhatIf) -> View:
    touched = sorted(found.groups, key=_weight, reverse=True)
    sums = [one.effects for one in found.groups]
    return View(
        runs=found.runs,
        refused=sum(one.refused for one in sums),
        later=sum(one.later for one in sums),
        sooner=sum(one.sooner for one in sums),
        limits=[_limit(one) for one in found.limits],
        groups=[_group(one) for one in touched[:MOST_GROUPS]],
        more=max(0, len(touched) - MOST_GROUPS),
        has_costs=any(one.cost_before is not None for one in found.groups),
        not_replayed=[_not_replayed(one) for one in found.not_replayed],
        unpriced=found.unpriced,
        history_until=found.history_until,
    )


def _weight(one: GroupEffects) -> tuple[int, int, str]:
    effects = one.effects
    return effects.refused + effects.later + effects.sooner, effects.runs, one.group


def _limit(one: LimitEffects) -> LimitLine:
    return LimitLine(
        object=changeview.object_scope(one.kind, one.name, one.field),
        word=changeview.limit_word(one.field, one.tres),
        before=changeview.limit_value(one.field, one.tres, one.before),
        after=changeview.limit_value(one.field, one.tres, one.after),
        refused=one.effects.refused,
        later=one.effects.later,
        later_hours=_hours(one.effects.later_seconds),
        sooner=one.effects.sooner,
        sooner_hours=_hours(one.effects.sooner_seconds),
    )


def _group(one: GroupEffects) -> GroupLine:
    effects = one.effects
    label = gettext(
        "%(refused)s refused, %(later)s later, %(sooner)s sooner of %(runs)s",
        refused=effects.refused,
        later=effects.later,
        sooner=effects.sooner,
        runs=effects.runs,
    )
    return GroupLine(
        group=one.group,
        runs=effects.runs,
        refused=effects.refused,
        later=effects.later,
        later_hours=_hours(effects.later_seconds),
        sooner=effects.sooner,
        sooner_hours=_hours(effects.sooner_seconds),
        bar=_bar(effects),
        label=label,
        cost_before=one.cost_before,
        cost_after=one.cost_after,
    )


def _bar(effects: Effects) -> list[Part]:
    parts, at = [], 0.0
    counts = {"failed": effects.refused, "waiting": effects.later, "done": effects.sooner}
    for kind, number in counts.items():
        wide = min(100.0 - at, 100 * number / max(1, effects.runs))
        if wide > 0:
            parts.append(Part(kind, round(at, 2), round(wide, 2)))
        at += wide
    return parts


def _hours(seconds: int) -> str:
    return f"{seconds / 3600:,.1f}"


def _not_replayed(one: NotReplayed) -> str:
    word = changeview.limit_word(one.field, one.tres)
    return f"{KIND_TEXTS[Of(one.kind)]} {one.name}, {word}"
