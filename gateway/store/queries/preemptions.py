"""How often the runs of a QoS were preempted here."""

from collections.abc import Iterable

from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session

from gateway.core.planner.site import Preemptions
from gateway.store.models import Run, table_of

NEWEST = 2000  # enough for a mean, and few enough for a page that somebody types in
_R = table_of(Run).c
_OF_QOS = (
    select(_R.state, _R.elapsed_seconds)
    .where(_R.qos == bindparam("qos"), _R.end_time.is_not(None))
    .order_by(_R.end_time.desc())
    .limit(NEWEST)
)


def of_qos(session: Session, names: Iterable[str]) -> dict[str, Preemptions]:
    """Of the newest ended runs of each QoS."""
    found = {}
    for name in names:
        rows = session.execute(_OF_QOS, {"qos": name}).all()
        events = sum(state == "PREEMPTED" for state, _ in rows)
        found[name] = Preemptions(events, sum(seconds for _, seconds in rows))
    return found
