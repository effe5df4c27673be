"""Undo: items for `propose` that lead back to a version, or to what was before a change."""

from gateway.core.policy_change import ChangeState, Item, Of
from gateway.errors import NotFound, Refused
from gateway.services.policy_back import backwards
from gateway.services.policy_present import present
from gateway.store.queries import policy_changes as rows
from gateway.store.uow import Begin

_DONE = frozenset({ChangeState.APPLIED, ChangeState.PARTLY})


def undo(of: Of, name: str, version: int, *, begin: Begin) -> tuple[Item, ...]:
    """Back to all that this version says. A QoS that was retired since is offered again.

    NotFound; Refused policy_nothing_changes, and policy_cannot_restore: Slurm had it not, or the
    account is gone.
    """
    with begin() as session:
        there = present(session)
        wanted = rows.version(session, of, name, version)
    if wanted is None:
        raise NotFound(f"no version {version} of {name}")
    found = there.policy(of, name)
    if wanted.policy is None or (found is None and of is Of.GROUP):
        raise Refused("policy_cannot_restore", object=wanted.object)
    again = name in there.retired and of is Of.QOS and not wanted.retired
    item = Item(found, wanted.policy, retires=False if again else None)
    if found is not None and not item.changes and not again:
        raise Refused("policy_nothing_changes")
    return (item,)


def undo_change(change_id: int, *, begin: Begin) -> tuple[Item, ...]:
    """Back to what was before the change, of the fields that it changed; what was made retires.

    NotFound; Refused policy_nothing_changes (nothing of it is left) and
    policy_changed_meanwhile (a later change has touched the same fields).
    """
    with begin() as session:
        change, there = rows.change(session, change_id), present(session)
    if change is None or change.state not in _DONE:
        raise NotFound("no change that could be undone")
    items = backwards(change, there)
    if not items:
        raise Refused("policy_nothing_changes")
    for item in items:
        if item.before != there.policy(item.of, item.name):
            raise Refused("policy_changed_meanwhile", object=item.object)
    return items
