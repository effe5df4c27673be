"""A template's script with no portal around it: no database, no associations, no limits.

What it prints is what the portal would send for the same values, account, partition and QoS.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gateway.core.access import Role, Viewer
from gateway.core.manifest import FieldKind, GpuRule, Manifest
from gateway.core.offer import (
    GpuKind,
    GroupChoice,
    Limits,
    Offer,
    PartitionChoice,
    QosChoice,
)
from gateway.errors import Refused
from gateway.services.draft import OWN_ENVIRONMENT, Draft, draft
from gateway.services.environments import Environment
from gateway.services.preview import fresh_ask
from gateway.services.templates import Catalogue

# What a script needs and only a site can say; without a word of the caller these stand there.
PLACEHOLDERS = {"group": "default", "partition": "gpu", "qos": "normal"}
_ALSO = {"account": "group"}  # as the #SBATCH line says it
_FIXED = (
    "group",
    "partition",
    "qos",
    "gpu_type",
    "nodes",
    "nproc_per_node",
    "time_limit",
    "name",
    "working_directory",
)
_MOST = 65_000  # nodes, or cards of one: more than any site has
_NO_LIMITS = Limits(None, "", None, None, None, None, None, None)


def names(manifest: Manifest) -> tuple[str, ...]:
    """What may be set for this template."""
    own = (field.name for field in manifest.fields if field.kind is not FieldKind.ENVIRONMENT)
    chosen = ("gpus_per_node",) if manifest.resources.gpus is GpuRule.CHOSEN else ()
    return (*_FIXED, *chosen, *own)


def render_by_hand(
    template: str,
    given: Mapping[str, str],
    *,
    user: str,
    folder: str,
    environment: str,
    catalogue: Catalogue,
    environments: Sequence[Environment],
) -> Draft:
    """The draft, with its problems or its script. `folder` is the working folder where none is
    given; `environment` a name of the list, or a path: a virtual environment of one's own.

    Raises Refused for a template or a name that is not known, with those that are.
    """
    found = catalogue.get(template)
    if found is None:
        raise Refused("no_such_template", known=", ".join(one.name for one in catalogue.all()))
    typed = {_ALSO.get(name, name): value for name, value in given.items()}
    known = names(found.manifest)
    if unknown := sorted(typed.keys() - set(known)):
        raise Refused("no_such_name", name=unknown[0], known=", ".join(known))
    site = PLACEHOLDERS | {name: value for name, value in typed.items() if name in PLACEHOLDERS}
    offer = _offer(user, site, typed.get("gpu_type", ""))
    fresh = fresh_ask(found.manifest, offer)
    values = fresh.values | {name: value for name, value in typed.items() if name not in _FIXED}
    fixed = {"working_directory": folder} | {n: v for n, v in typed.items() if n in _FIXED}
    if environment.startswith("/"):
        values, environment = values | {"environment_path": environment}, OWN_ENVIRONMENT
    elif environment not in (there := [one.name for one in environments]):
        raise Refused("no_such_environment", field="environment", known=", ".join(there))
    return draft(
        replace(fresh, values=values, environment=environment, **fixed),
        viewer=Viewer(0, 0, user, user, user, Role.RESEARCHER, (), ()),
        offer=offer,
        catalogue=catalogue,
        environments=environments,
    )


def _offer(user: str, site: Mapping[str, str], gpu_type: str) -> Offer:
    """One group, one partition, one QoS, and room for anything."""
    qos = QosChoice(
        site["qos"],
        description="",
        priority=0,
        preemptible=False,
        is_default=True,
        usage_factor_millionths=1_000_000,
        limits=_NO_LIMITS,
    )
    partition = PartitionChoice(
        site["partition"],
        state="UP",
        is_default=True,
        nodes=_MOST,
        max_nodes=None,
        max_minutes=None,
        default_minutes=None,
        cpus_per_node=None,
        gpus=(GpuKind(gpu_type or "gpu", per_node=_MOST, nodes=_MOST),),
        qos=(qos,),
    )
    group = GroupChoice(site["group"], is_default=True, leads=False, partitions=(partition,))
    return Offer(user, (group,))
