"""Small jobs about datasets that need no card: where a person may run one."""

from collections.abc import Mapping

from gateway.core.ask import Ask
from gateway.core.offer import Offer, PartitionChoice
from gateway.errors import Refused

_LONGEST = 1 << 30


def cpu_ask(
    template: str,
    offer: Offer,
    *,
    name: str,
    minutes: int,
    values: Mapping[str, str],
    partition: str | None = None,
    nodes: int = 1,
    group: str | None = None,
) -> Ask:
    """The form of such a job in this person's own place: a partition without cards before one
    with, then the one with the shortest limit that is enough. `minutes` are cut to it. Refused
    `dataset_no_place`."""
    places = [
        (one.name, found)
        for one in sorted(offer.groups, key=lambda one: not one.is_default)
        if not one.leaving and group in {None, one.name}
        for found in one.partitions
        if found.is_up and found.qos and partition in {None, found.name}
    ]
    if not places:
        raise Refused("dataset_no_place", login=offer.user)
    own, place = min(places, key=lambda one: _rank(one[1], minutes))
    qos = place.default_qos
    return Ask(
        template=template,
        group=own,
        partition=place.name,
        qos=qos.name if qos else "",
        nodes=str(nodes),
        nproc_per_node="1",
        time_limit=str(min(minutes, _limit(place))),
        name=name,
        working_directory="~",
        values=dict(values),
    )


def _limit(place: PartitionChoice) -> int:
    qos = place.default_qos
    limits = (place.max_minutes, qos.limits.max_minutes if qos else None)
    return min((one for one in limits if one is not None), default=_LONGEST)


def _rank(place: PartitionChoice, minutes: int) -> tuple[bool, bool, int]:
    return _limit(place) < minutes, bool(place.gpus), _limit(place)
