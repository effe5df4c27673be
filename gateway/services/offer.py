"""What this person may choose from, as the last poll of Slurm's policy saw it."""

from dataclasses import replace
from typing import TYPE_CHECKING

from gateway.core.access import Viewer
from gateway.core.policy import Offer, build_offer
from gateway.store import datasets, memberships, prices, snapshot, training
from gateway.store.queries.policy_changes import retired
from gateway.store.uow import Begin

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


def offer(viewer: Viewer, *, begin: Begin) -> Offer:
    """The offer from the database; no call to Slurm. Empty when Slurm knows no association."""
    with begin() as session:
        return offer_in(session, viewer)


def offer_in(session: "Session", viewer: Viewer) -> Offer:
    """The same inside an open transaction, with the groups' rules and the site's terms."""
    found = build_offer(
        viewer.unix_user,
        snapshot.associations_of(session, viewer.unix_user),
        snapshot.partitions(session),
        snapshot.qos(session),
        snapshot.nodes(session),
        accounts=snapshot.accounts(session),
        retired=retired(session),
    )
    rules = training.on_stall(session, [group.name for group in found.groups])
    leaving = memberships.leaving(session, viewer.unix_user)
    groups = (
        replace(group, on_stall=rules[group.name], leaving=group.name in leaving)
        for group in found.groups
    )
    return replace(
        found,
        groups=tuple(groups),
        free_when_preempted=prices.free_when_preempted(session),
        datasets=datasets.offered(session, viewer),
    )
