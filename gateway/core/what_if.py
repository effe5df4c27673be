"""What proposed limits and prices would have done to the runs of the past.

The model, in full (docs/engineering/history.md): people submit the same; each past run is a job
of its own; every limit is looked at by itself, as if the cluster were as it was; jobs of one key
(the QoS, one group of it, one person of it) start in the order in which they did, and a start only
moves later. Where a limit rises, the queue of its key is replayed from the moments at which
jobs became eligible, under the old and the new limit, and no job gains more than it waited.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from gateway.core.qos import Field


@dataclass(frozen=True, slots=True)
class Effects:
    """`refused`: refused at submit, or could never start. `later`: would have waited for the
    limit, so many seconds more in all (until the end of the window at most). `sooner`: would have
    waited so much less."""

    runs: int = 0
    refused: int = 0
    later: int = 0
    later_seconds: int = 0
    sooner: int = 0
    sooner_seconds: int = 0


@dataclass(frozen=True, slots=True)
class LimitEffects:
    """Of one changed limit by itself. `before`, `after` None: no limit."""

    kind: str  # qos, group
    name: str
    field: Field
    tres: str | None
    before: int | None
    after: int | None
    effects: Effects


@dataclass(frozen=True, slots=True)
class GroupEffects:
    """Of all changes together: a run counts once, with the longest of its waits.

    Costs are in millionths, of all its runs, refused ones too, by today's list and by the proposed
    one; None: the site has no prices.
    """

    group: str
    effects: Effects
    cost_before: int | None
    cost_after: int | None


@dataclass(frozen=True, slots=True)
class NotReplayed:
    """A changed field that history cannot be replayed against: its usage decays in Slurm, or the
    runs do not say how much of the resource they had."""

    kind: str
    name: str
    field: Field
    tres: str | None


@dataclass(frozen=True, slots=True)
class ProposedPrices:
    """What differs from today's list: millionths an hour by resource (a GPU type, `cpu`),
    factors in millionths by QoS."""

    per_hour: Mapping[str, int] = field(default_factory=dict)
    factors: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if min((*self.per_hour.values(), *self.factors.values()), default=0) < 0:
            raise ValueError("a price or a factor cannot be negative")


@dataclass(frozen=True, slots=True)
class WhatIf:
    """Runs that started in [since, until). `unpriced`: runs without a price, in neither cost.
    `history_until`: how far the history is known; None: there is none yet."""

    since: datetime
    until: datetime
    runs: int
    limits: tuple[LimitEffects, ...]
    groups: tuple[GroupEffects, ...]
    not_replayed: tuple[NotReplayed, ...]
    unpriced: int
    history_until: datetime | None
