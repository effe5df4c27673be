"""Whether an environment goes with a template and a type of card, from what is known of both."""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.core.env_facts import Clash, Need, card_clashes, lacking
from gateway.core.environments import Environment
from gateway.core.planner.cards import Cards, capability_of
from gateway.store import environments as store
from gateway.store.environments import CheckRow
from gateway.store.uow import Begin


@dataclass(frozen=True, slots=True)
class Fit:
    """What stands against the pair; nothing where nothing is known."""

    clashes: tuple[Clash, ...]
    failed: CheckRow | None


def fit(
    environment: Environment,
    needs: Sequence[Need],
    gpu_type: str,
    *,
    cards: Cards,
    begin: Begin,
) -> Fit:
    """`gpu_type` empty: no card, or which one is not known. What a card and its nodes' driver are
    comes from the newest checks on it, the card also from the planner's table."""
    clashes = lacking(environment.facts, tuple(needs))
    if not gpu_type:
        return Fit(tuple(clashes), None)
    with begin() as session:
        checks = store.newest_checks(session)
    there = sorted(
        (one for one in checks.values() if one.gpu_type == gpu_type and one.driver),
        key=lambda one: one.at,
    )
    told = there[-1] if there else None
    capability = told.capability if told and told.capability else capability_of(gpu_type, cards)
    clashes += card_clashes(environment.facts, capability, told.driver if told else "")
    check = checks.get((environment.name, gpu_type))
    return Fit(tuple(clashes), check if check is not None and not check.ok else None)
