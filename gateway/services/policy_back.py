"""What takes a change back: at its end, or when somebody undoes it."""

from dataclasses import replace

from gateway.core.policy_change import Item, ItemState, Of, in_order, way_back
from gateway.core.qos import GroupPolicy, Policy
from gateway.services.policy_present import Present
from gateway.services.policy_retire import retire_what_can
from gateway.store.queries.policy_changes import ChangeRow


def backwards(change: ChangeRow, there: Present) -> tuple[Item, ...]:
    """Items that take back what was done of it: the fields that it changed alone. What it made
    retires; what it retired is brought back."""
    items = [
        replace(row.item, after=row.found or row.item.after)
        for row in reversed(change.items)
        if row.state in (ItemState.DONE, ItemState.HALF)
    ]
    back: dict[str, Item] = {}
    for item in items:
        found = there.policy(item.of, item.name)
        if item.before is not None and found and (own := _changed_back(item, found, there)):
            back[own.object] = own
    for item in items:
        if item.before is None and item.name in there.qos and item.name not in there.retired:
            for own in retire_what_can(item.name, _afterwards(there, back)):
                # A group that goes back and lets go is one item.
                first = back.get(own.object)
                back[own.object] = replace(own, before=first.before) if first else own
    return in_order(tuple(back.values()))


def _changed_back(done: Item, found: Policy, there: Present) -> Item | None:
    item = way_back(done, found)
    retires = None if done.retires is None else not done.retires
    if retires is not None and retires != (done.name in there.retired):
        return replace(item or Item(found, found), retires=retires)
    return item


def _afterwards(there: Present, back: dict[str, Item]) -> Present:
    """With the groups as they will be."""
    groups = {
        item.name: item.after
        for item in back.values()
        if item.of is Of.GROUP and isinstance(item.after, GroupPolicy)
    }
    return replace(there, groups=there.groups | groups)
