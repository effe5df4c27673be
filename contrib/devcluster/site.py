"""What the development cluster consists of, read from site.toml."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contrib.devcluster.errors import DevclusterError

NAME = re.compile(r"[a-z][a-z0-9-]{0,30}")
FIRST_UID = 2001
FIRST_GID = 3001
ADMIN = "admin-1"
MAX_GPUS = 16
MAX_NODES = 200  # the last part of a node's address


@dataclass(frozen=True, slots=True)
class Partition:
    name: str
    gpu: str
    nodes: int
    gpus_per_node: int
    cpus_per_node: int
    memory_mib: int
    max_time: str
    default: bool = False

    def node_names(self) -> list[str]:
        return [f"{self.name}-{number}" for number in range(1, self.nodes + 1)]


@dataclass(frozen=True, slots=True)
class Qos:
    name: str
    options: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Group:
    name: str
    title: str
    leader: str
    members: tuple[str, ...]
    qos: tuple[str, ...]
    limits: tuple[str, ...] = ()

    def people(self) -> tuple[str, ...]:
        return (self.leader, *self.members)


@dataclass(frozen=True, slots=True)
class Account:
    """A Unix account; `group` is the primary group, `others` the further ones."""

    name: str
    uid: int
    group: str
    gid: int
    others: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Site:
    cluster: str
    slurm_conf: str
    partitions: tuple[Partition, ...]
    qos: tuple[Qos, ...]
    groups: tuple[Group, ...]

    def node_names(self) -> list[str]:
        return [name for partition in self.partitions for name in partition.node_names()]

    def gpu_types(self) -> list[str]:
        return sorted({partition.gpu for partition in self.partitions})

    def accounts(self) -> list[Account]:
        """The administrator, then each group's people; who is in two groups is listed once."""
        gids = {group.name: FIRST_GID + at for at, group in enumerate(self.groups, start=1)}
        homes = {ADMIN: ["admins"]}
        for group in self.groups:
            for person in group.people():
                homes.setdefault(person, []).append(group.name)
        gids["admins"] = FIRST_GID
        return [
            Account(name, FIRST_UID + at, names[0], gids[names[0]], tuple(names[1:]))
            for at, (name, names) in enumerate(homes.items())
        ]


def load(path: Path) -> Site:
    """Read a site file; a mistake in it is told with the file's name."""
    try:
        site = _parse(tomllib.loads(path.read_text()))
    except (OSError, tomllib.TOMLDecodeError, KeyError, TypeError, ValueError) as wrong:
        raise DevclusterError(f"{path}: {wrong!r}") from wrong
    for name in _names(site):
        if not NAME.fullmatch(name):
            raise DevclusterError(f"{path}: {name!r} is not a plain lower-case name")
    if not 0 < len(site.node_names()) <= MAX_NODES:
        raise DevclusterError(f"{path}: from 1 to {MAX_NODES} nodes are possible")
    if max(partition.gpus_per_node for partition in site.partitions) > MAX_GPUS:
        raise DevclusterError(f"{path}: at most {MAX_GPUS} GPUs on a node are possible")
    return site


def _names(site: Site) -> Iterator[str]:
    yield site.cluster
    yield from (partition.name for partition in site.partitions)
    yield from site.gpu_types()
    yield from (qos.name for qos in site.qos)
    yield from (group.name for group in site.groups)
    yield from (account.name for account in site.accounts())


def _parse(read: dict[str, Any]) -> Site:
    return Site(
        cluster=str(read["cluster"]),
        slurm_conf=str(read.get("slurm_conf", "")),
        partitions=tuple(Partition(**entry) for entry in read["partitions"]),
        qos=tuple(Qos(str(entry["name"]), tuple(entry["options"])) for entry in read["qos"]),
        groups=tuple(_group(entry) for entry in read["groups"]),
    )


def _group(entry: dict[str, Any]) -> Group:
    return Group(
        name=entry["name"],
        title=entry["title"],
        leader=entry["leader"],
        members=tuple(entry["members"]),
        qos=tuple(entry["qos"]),
        limits=tuple(entry.get("limits", ())),
    )
