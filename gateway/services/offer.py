"""What this person may choose from, as the last poll of Slurm's policy saw it."""

from gateway.core.access import Viewer
from gateway.core.policy import Offer, build_offer
from gateway.store import snapshot
from gateway.store.uow import Begin


def offer(viewer: Viewer, *, begin: Begin) -> Offer:
    """The offer from the database; no call to Slurm. Empty when Slurm knows no association."""
    with begin() as session:
        associations = snapshot.associations_of(session, viewer.unix_user)
        partitions = snapshot.partitions(session)
        qos = snapshot.qos(session)
        nodes = snapshot.nodes(session)
    return build_offer(viewer.unix_user, associations, partitions, qos, nodes)
