"""What of policy needs an administrator: for the work list of the first admin page."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gateway.core.notices import Kind
from gateway.core.policy_change import ChangeState
from gateway.store.queries import group_credit, policy_changes
from gateway.web.notice_texts import notice_text
from gateway.web.texts import ngettext
from gateway.web.views.attention import Todo

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

KINDS = (Kind.POLICY_DRIFT.value, Kind.POLICY_FAILED.value, Kind.POLICY_NOT_BACK.value)
_MOST = 100


def needs(session: "Session", *, second_approval: bool) -> list[Todo]:
    """Drift, changes that failed, and those that wait for a second administrator."""
    told = group_credit.notices(session, None)
    todo = [
        Todo(notice_text(one.kind, one.facts), *_place(one.facts))
        for one in told
        if one.kind in KINDS
    ]
    waiting = policy_changes.changes(session, states=(ChangeState.PROPOSED,), limit=_MOST)
    if second_approval and waiting:
        text = ngettext(
            "%(num)d change waits for another administrator's yes.",
            "%(num)d changes wait for another administrator's yes.",
            len(waiting),
        )
        todo.append(Todo(text, "policy.changes"))
    return todo


def _place(facts: Mapping[str, Any]) -> tuple[str, dict[str, object]]:
    """The page of the change that failed, else of the object that drifted."""
    if "change" in facts:
        return "policy.change", {"change_id": facts["change"]}
    kind, _, name = str(facts["object"]).partition(":")
    return "policy.show", {"kind": kind, "name": name}
