"""A QoS that shall be used no more: all groups let go of it, and the portal offers it no more.

Slurm keeps it, so that what used it can still be read, and so that it can be brought back.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from gateway.core.policy_change import Item
from gateway.core.qos import GroupPolicy, Qos
from gateway.errors import NotFound, Refused
from gateway.services.policy_present import Present, present
from gateway.store import snapshot
from gateway.store.uow import Begin

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


def retire(name: str, *, replacement: str | None, begin: Begin) -> tuple[Item, ...]:
    """Items for `propose`. `replacement` becomes the default of the groups whose default it is.

    NotFound; Refused policy_default_needed (there are such groups and no replacement, or one may
    not use it), policy_last_qos (a group without any would take those of the account above).
    """
    with begin() as session:
        there = present(session)
    if name not in there.qos:
        raise NotFound(f"no QoS {name}")
    groups = there.groups_with(name)
    for group in groups:
        if not (left := _left(group, name, there)):
            raise Refused("policy_last_qos", field="name", group=group.name)
        if group.default_qos == name and replacement not in left:
            raise Refused("policy_default_needed", field="replacement", group=group.name)
    items = (_let_go(group, name, there, replacement) for group in groups)
    return (*items, _retired(there.qos[name]))


def retire_what_can(name: str, there: Present) -> tuple[Item, ...]:
    """The same where nobody is there to name a replacement: groups that cannot let go keep it,
    and Slurm's answer to the last item says so."""
    free = [
        group
        for group in there.groups_with(name)
        if group.default_qos != name and _left(group, name, there)
    ]
    return (*(_let_go(group, name, there, None) for group in free), _retired(there.qos[name]))


def keepers(session: "Session", name: str) -> tuple[str, ...]:
    """People with a list of QoS of their own that holds this one, as `person (group)`.

    Slurm takes such a list in place of the group's: they keep the QoS when the group lets go.
    """
    usable = {one.policy.name: set(one.usable_qos) for one in snapshot.accounts(session)}
    return tuple(
        sorted(
            f"{one.user} ({one.account})"
            for one in snapshot.associations_with_qos(session, name)
            if set(one.qos) != usable.get(one.account)
        )
    )


def bring_back(name: str, *, begin: Begin) -> tuple[Item, ...]:
    """Offered again; groups get it by changes of their own.

    NotFound; Refused policy_not_retired.
    """
    with begin() as session:
        return (_brought_back(session, name),)


def _brought_back(session: "Session", name: str) -> Item:
    there = present(session)
    if name not in there.qos:
        raise NotFound(f"no QoS {name}")
    if name not in there.retired:
        raise Refused("policy_not_retired", field="name", qos=name)
    return Item(there.qos[name], there.qos[name], retires=False)


def _retired(qos: Qos) -> Item:
    return Item(qos, qos, retires=True)


def _left(group: GroupPolicy, name: str, there: Present) -> tuple[str, ...]:
    return tuple(one for one in there.usable(group) if one != name)


def _let_go(group: GroupPolicy, name: str, there: Present, replacement: str | None) -> Item:
    """A group that inherits the QoS gets a list of its own, of the others."""
    default = replacement if group.default_qos == name else group.default_qos
    return Item(group, replace(group, qos=_left(group, name, there), default_qos=default))
