"""What a group wants done about a training run that stalls; its scripts carry the rule along."""

from datetime import datetime

from gateway.core.training.stalls import OnStall
from gateway.store import events, training
from gateway.store.uow import Begin


def set_on_stall(
    group: str, rule: OnStall, *, begin: Begin, now: datetime, person_id: int | None
) -> bool:
    """For the jobs that are submitted from now on. Whether anything changed; each change is an
    event with who made it."""
    with begin() as session:
        before = training.on_stall(session, [group])[group]
        if before == rule:
            return False
        training.set_on_stall(session, group, rule.value, now=now, person_id=person_id)
        detail = {"group": group, "before": before, "after": rule.value}
        events.add(session, "on_stall_set", at=now, person_id=person_id, detail=detail)
    return True
