"""Replay the past against proposed limits and prices."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.core.what_if import ProposedPrices, WhatIf
from gateway.store.uow import Begin

if TYPE_CHECKING:
    from gateway.core.policy_change import Item

NO_PRICES = ProposedPrices()


def replay(
    items: "Sequence[Item]",
    *,
    days: int,
    prices: ProposedPrices = NO_PRICES,
    history: Path,
    read: Begin,
    now: datetime,
) -> WhatIf:
    """The runs that started in the last `days` days; see core.what_if for the model. `history` is
    $SLUICE_HOME/history. Within some two seconds for a million runs."""
    raise NotImplementedError
