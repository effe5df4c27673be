"""What the card-hours of a period would have cost at another price list."""

from dataclasses import dataclass
from datetime import datetime

from gateway.core import elsewhere
from gateway.core.elsewhere import Comparison
from gateway.errors import Refused
from gateway.store import prices
from gateway.store.prices import SITE
from gateway.store.queries import close as reads
from gateway.store.uow import Begin


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """`refunded` was given back here for runs of the period; `comparison` is before that."""

    list_name: str
    group: str | None
    since: datetime
    until: datetime
    comparison: Comparison
    refunded: int


def cost_elsewhere(
    list_name: str, *, since: datetime, until: datetime, read: Begin, group: str | None = None
) -> Elsewhere:
    """For runs that ended in the period, of a group or of the whole site. Refused: no_such_list."""
    with read() as session:
        names = [name for name in prices.lists(session) if name != SITE]
        if list_name not in names:
            raise Refused("no_such_list", field="list", lists=", ".join(names))
        window = {"since": since, "until": until}
        used = reads.used(session, **window, group=group)
        return Elsewhere(
            list_name=list_name,
            group=group,
            since=since,
            until=until,
            comparison=elsewhere.compare(used, prices.load(session, list_name)),
            refunded=reads.refunded(session, **window, group=group),
        )
