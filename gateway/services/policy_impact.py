"""What a change of policy would do to the jobs that are there, from the database alone."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from gateway.core.impact import Impact
from gateway.store.uow import Begin

if TYPE_CHECKING:
    from gateway.core.policy_change import Item


def preview(items: "Sequence[Item]", *, read: Begin, now: datetime) -> Impact:
    """The jobs that would wait, be ended, be let go; see core.impact. Asks Slurm nothing."""
    raise NotImplementedError
