"""Replay the past against proposed limits and prices."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gateway.core import limit_rules as rules
from gateway.core.caps import KEYS, TOGETHER, Way
from gateway.core.limit_rules import LimitChange
from gateway.core.policy_change import Item, Of
from gateway.core.pricing import Preempted, PriceList
from gateway.core.qos import Change, Qos, Scope
from gateway.core.replay import Asked, waits, waits_for_run_minutes
from gateway.core.what_if import (
    Effects,
    GroupEffects,
    LimitEffects,
    NotReplayed,
    ProposedPrices,
    WhatIf,
)
from gateway.history import blocks, past
from gateway.services.policy_impact import inside, qos_afterwards, qos_lists
from gateway.store import prices as price_lists
from gateway.store import snapshot
from gateway.store.uow import Begin
from gateway.wire.policy import Account

if TYPE_CHECKING:
    import numpy as np

    Numbers = np.ndarray[Any, Any]

NO_PRICES = ProposedPrices()
# What decays in Slurm, or depends on what waited at each submit, is not replayed.
_REPLAYED = frozenset({*TOGETHER, Way.AMOUNT, Way.NODE, Way.MINUTES, Way.WALL, Way.LEAST})
_NOTHING = frozenset({"description"})
_MINUTE = 60


def replay(
    items: Sequence[Item],
    *,
    days: int,
    prices: ProposedPrices = NO_PRICES,
    history: Path,
    read: Begin,
    now: datetime,
) -> WhatIf:
    """The runs that started in the last `days` days; see core.what_if for the model. `history` is
    $SLUICE_HOME/history. Within some two seconds for a million runs."""
    with read() as session:
        qos = qos_afterwards(items, snapshot.qos(session))
        accounts = snapshot.accounts(session)
        listed = price_lists.load(session)
    since = now - timedelta(days=days)
    known = blocks.load(history)
    with past.past(history, since=since, until=now) as runs:
        replayed = _Replay(runs, qos, accounts, until=now)
        for item in items:
            for change in item.changes:
                replayed.change(item, change)
        costs, unpriced = _costs(runs, listed, prices, now)
        return WhatIf(
            since=since,
            until=now,
            runs=int(replayed.counted.sum()),
            limits=tuple(replayed.limits),
            groups=tuple(replayed.by_group(costs)),
            not_replayed=tuple(replayed.not_replayed),
            unpriced=unpriced,
            history_until=known.made_at if known else None,
        )


@dataclass(frozen=True, slots=True)
class _Outcome:
    """A column each: what becomes of the runs of the window."""

    refused: "Numbers"
    later: "Numbers"  # seconds
    sooner: "Numbers"


class _Replay:
    """All changes, one limit after the other; a run counts once in what they do together."""

    def __init__(
        self,
        runs: past.Past,
        qos: Mapping[str, Qos],
        accounts: Sequence[Account],
        *,
        until: datetime,
    ) -> None:
        self.runs, self.qos, self.accounts = runs, qos, accounts
        self.until = int(until.timestamp())
        self.counted = runs.counted.astype(bool)
        self.limits: list[LimitEffects] = []
        self.not_replayed: list[NotReplayed] = []
        self._together = _none(runs.size)

    def change(self, item: Item, change: Change) -> None:
        key = change.field.key
        if key == "qos" and item.of is Of.GROUP:
            self._lost_qos(item, change)
        elif key in rules.RULES and KEYS[key][0] in _REPLAYED:
            for number in rules.limit_changes(change):
                self._limit(item, number)
        elif key in rules.RULES:
            for number in rules.limit_changes(change):
                self._leave_out(item, number.field, number.tres)
        elif key not in _NOTHING:
            self._leave_out(item, change.field, None)

    def by_group(self, costs: Mapping[str, past.Cost]) -> Iterator[GroupEffects]:
        """Those with any run in the window, the one with most effect first."""
        import numpy as np  # noqa: PLC0415

        codes, many = self.runs.group_codes, len(self.runs.groups)
        found = []
        outcome = self._together

        def summed(weights: "Numbers") -> "Numbers":
            return np.bincount(codes, weights=weights * self.counted, minlength=many)

        columns = [
            summed(one)
            for one in (
                np.ones(len(codes)),
                outcome.refused,
                outcome.later > 0,
                outcome.later,
                outcome.sooner > 0,
                outcome.sooner,
            )
        ]
        for place, name in enumerate(self.runs.groups):
            effects = Effects(*(round(float(column[place])) for column in columns))
            if effects.runs:
                cost = costs.get(name)
                found.append(
                    GroupEffects(
                        name,
                        effects,
                        cost.before if cost else None,
                        cost.after if cost else None,
                    )
                )
        yield from sorted(found, key=_weight)

    def _lost_qos(self, item: Item, change: Change) -> None:
        lists = qos_lists(item, self.accounts)
        outcome = _none(self.runs.size)
        if lists.lost:
            scope = past.Scope(groups=lists.groups)
            outcome.refused[self.runs.of(scope, qos=lists.lost)] = True
        self._add(item, LimitChange(change.field, None, None, None), outcome)

    def _limit(self, item: Item, number: LimitChange) -> None:
        scope = self._scope(item, number)
        if not self.runs.is_known(scope, number.tres):
            self._leave_out(item, number.field, number.tres)
        if not past.is_counted(number.tres):
            return
        way = KEYS[number.field.key][0]
        outcome = _none(self.runs.size)
        broken = self.runs.breaking(scope, way, number.tres, number.before, number.after)
        outcome.refused[broken] = True
        if way in TOGETHER:
            self._queue(scope, way, number, outcome)
        self._add(item, number, outcome)

    def _queue(self, scope: past.Scope, way: Way, number: LimitChange, outcome: _Outcome) -> None:
        import numpy as np  # noqa: PLC0415

        before, after = number.before, number.after
        if after is not None and (before is None or after < before):
            rows, asked, _ = self.runs.asked(scope, way, number.tres, below=after, eligible=False)
            left = self.until - np.array(asked.wanted, dtype=np.int64)
            outcome.later[rows] = np.minimum(_waits(asked, way, after), left)
            return
        assert before is not None
        rows, asked, waited = self.runs.asked(scope, way, number.tres, below=before, eligible=True)
        old = _waits(asked, way, before)
        new = _waits(asked, way, after) if after is not None else np.zeros_like(old)
        outcome.sooner[rows] = np.minimum(waited, np.maximum(old - new, 0))

    def _scope(self, item: Item, number: LimitChange) -> past.Scope:
        scope = number.field.scope
        if item.of is Of.QOS:
            key = {Scope.GROUP: "group", Scope.PERSON: "user"}.get(scope, "all")
            return past.Scope(qos=item.name, key=key)
        own = frozenset(
            name
            for name, level in self.qos.items()
            if rules.goes_before(number.field.key, number.tres, level)
        )
        return past.Scope(
            groups=inside(self.accounts, item.name),
            without_qos=own,
            key="person" if scope is Scope.PERSON else "all",
        )

    def _add(self, item: Item, number: LimitChange, outcome: _Outcome) -> None:
        import numpy as np  # noqa: PLC0415

        all_ = self._together
        np.logical_or(all_.refused, outcome.refused, out=all_.refused)
        np.maximum(all_.later, outcome.later, out=all_.later)
        np.maximum(all_.sooner, outcome.sooner, out=all_.sooner)
        all_.later[all_.refused] = 0
        all_.sooner[all_.refused] = 0
        facts = (item.of, item.name, number.field, number.tres, number.before, number.after)
        self.limits.append(LimitEffects(*facts, self._effects(outcome)))

    def _effects(self, outcome: _Outcome) -> Effects:
        counted = self.counted
        later, sooner = outcome.later[counted], outcome.sooner[counted]
        return Effects(
            int(counted.sum()),
            int(outcome.refused[counted].sum()),
            int((later > 0).sum()),
            int(later.sum()),
            int((sooner > 0).sum()),
            int(sooner.sum()),
        )

    def _leave_out(self, item: Item, of: Any, tres: str | None) -> None:
        self.not_replayed.append(NotReplayed(item.of, item.name, of, tres))


def _waits(asked: Asked, way: Way, limit: int) -> "Numbers":
    import numpy as np  # noqa: PLC0415

    if way is Way.SHARED_MINUTES:
        return np.array(waits_for_run_minutes(asked, limit * _MINUTE), dtype=np.int64)
    return np.array(waits(asked, limit), dtype=np.int64)


def _none(size: int) -> _Outcome:
    import numpy as np  # noqa: PLC0415

    return _Outcome(np.zeros(size, dtype=bool), np.zeros(size, np.int64), np.zeros(size, np.int64))


def _costs(
    runs: past.Past, listed: PriceList, proposed: ProposedPrices, now: datetime
) -> tuple[dict[str, past.Cost], int]:
    """By today's list and by the proposed one; nothing where neither has a price."""
    if not listed.prices and not proposed.per_hour:
        return {}, 0
    rates = []
    for resource, qos in sorted(runs.pairs()):
        before = listed.price(resource, now)
        after = proposed.per_hour.get(resource, before)
        factor = listed.factor_millionths(qos, now)
        new_factor = proposed.factors.get(qos, factor)
        rates.append(
            past.Rate(
                resource,
                qos,
                None if before is None else before * factor,
                None if after is None else after * new_factor,
            )
        )
    free = {qos for _, qos in runs.pairs() if listed.preempted(qos, now) is Preempted.FREE}
    costs = runs.costs(rates, free)
    return costs, sum(cost.unpriced for cost in costs.values())


def _weight(group: GroupEffects) -> tuple[int, int, int, str]:
    effects = group.effects
    moved = effects.later_seconds + effects.sooner_seconds
    return -effects.refused, -moved, -effects.runs, group.group
