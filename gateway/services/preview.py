"""The script beside the form, and how each field was read. Writes nothing, asks nobody."""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.core.access import Viewer
from gateway.core.ask import Ask, FieldProblem
from gateway.core.manifest import FieldKind, Manifest
from gateway.core.policy import Offer, Reading
from gateway.services.draft import draft
from gateway.services.environments import Environment
from gateway.services.offer import offer as read_offer
from gateway.services.templates import Catalogue
from gateway.store.uow import Begin

HOME = "~"


@dataclass(frozen=True, slots=True)
class Preview:
    """`script` is None while a problem stands in its way."""

    script: str | None
    reading: Reading
    problems: tuple[FieldProblem, ...]


def preview(
    ask: Ask,
    *,
    viewer: Viewer,
    begin: Begin,
    catalogue: Catalogue,
    environments: Sequence[Environment],
    offer: Offer | None = None,
) -> Preview:
    """The same path as the submit up to the request; the folder is looked at only there.
    `offer` spares the read of one that the caller has."""
    made = draft(
        ask,
        viewer=viewer,
        offer=offer or read_offer(viewer, begin=begin),
        catalogue=catalogue,
        environments=environments,
    )
    return Preview(made.script, made.reading, made.problems)


def fresh_ask(manifest: Manifest, offer: Offer) -> Ask:
    """An empty form's values: the template's defaults, this person's default group and QoS."""
    group = offer.default_group
    partition = group.default_partition if group else None
    qos = partition.default_qos if partition else None
    resources = manifest.resources
    minutes = partition.default_minutes if partition else None
    values = {f.name: f.default for f in manifest.fields if f.kind is not FieldKind.ENVIRONMENT}
    return Ask(
        template=manifest.name,
        group=group.name if group else "",
        partition=partition.name if partition else "",
        qos=qos.name if qos else "",
        nodes=str(resources.nodes.default),
        nproc_per_node=str(resources.nproc_per_node.default),
        time_limit=str(minutes or 60),
        name=manifest.name,
        working_directory=HOME,
        values=values | {"gpus_per_node": str(resources.gpus_per_node.default)},
    )
