"""Slurm's own start estimate, as the person; only when a person presses the button."""

from collections.abc import Sequence
from dataclasses import replace

from gateway.brokerclient.port import Broker
from gateway.core.access import Viewer
from gateway.core.ask import Ask
from gateway.services.draft import InvalidAsk, draft
from gateway.services.environments import Environment
from gateway.services.offer import offer as read_offer
from gateway.services.templates import Catalogue
from gateway.store.uow import Begin
from gateway.wire.messages import Estimate

# No submission has this token, and `sbatch --test-only` makes no job that could keep it.
_TOKEN = "estimate-0"  # noqa: S105


def estimate(
    ask: Ask,
    *,
    viewer: Viewer,
    begin: Begin,
    broker: Broker,
    catalogue: Catalogue,
    environments: Sequence[Environment],
) -> Estimate:
    """Nothing is stored and no job is made. InvalidAsk, or a broker error."""
    made = draft(
        ask,
        viewer=viewer,
        offer=read_offer(viewer, begin=begin),
        catalogue=catalogue,
        environments=environments,
    )
    if made.request is None:
        raise InvalidAsk(made.problems)
    return broker.estimate(replace(made.request, token=_TOKEN))
