"""What the pages do with a proposal: show it first, and let it be decided by a button.

A page proposes with `second_approval=True`, so that nobody applies what is only looked at; where
the site wants no second administrator, `decide` is the yes.
"""

from datetime import datetime
from typing import TYPE_CHECKING

from gateway.core.access import Viewer
from gateway.errors import NotFound, Refused
from gateway.services import policy_changes
from gateway.store import policy
from gateway.store.queries import policy_changes as rows
from gateway.store.uow import Begin

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


def decide(
    change_id: int, *, viewer: Viewer, second_approval: bool, begin: Begin, now: datetime
) -> None:
    """The change may be applied now, or at its start. With `second_approval`, the site's setting,
    only another one than its author can say so.

    NotFound; Refused policy_own_approval, policy_not_waiting.
    """
    if second_approval:
        policy_changes.approve(change_id, viewer=viewer, begin=begin, now=now)
        return
    values = {"approved_by": viewer.person_id, "approved_at": now, "needs_approval": False}
    with begin() as session:
        _known(session, change_id)
        if not policy.decide(session, change_id, values):
            raise Refused("policy_not_waiting")


def schedule(
    change_id: int,
    *,
    starts_at: datetime | None,
    ends_at: datetime | None,
    begin: Begin,
    now: datetime,
) -> None:
    """From when and until when it shall hold, while nobody has decided on it.

    NotFound; Refused policy_not_waiting, policy_ends_too_early.
    """
    if ends_at is not None and ends_at <= max(starts_at or now, now):
        raise Refused("policy_ends_too_early", field="ends_at")
    with begin() as session:
        _known(session, change_id)
        if not policy.set_times(session, change_id, starts_at=starts_at, ends_at=ends_at):
            raise Refused("policy_not_waiting")


def _known(session: "Session", change_id: int) -> None:
    if rows.change(session, change_id) is None:
        raise NotFound("no such change of policy")
