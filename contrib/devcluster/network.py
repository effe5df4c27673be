"""A pair of interfaces between the machine and an instance, with addresses of its own."""

import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from contrib.devcluster.commands import run
from contrib.devcluster.errors import DevclusterError
from contrib.devcluster.slurmconf import Network

# RFC 2544's range for tests inside one lab: no site routes it, so it cannot hide a real address
FIRST_TWO = "198.18"
PURPOSE = "the development cluster's network"


@dataclass(frozen=True, slots=True)
class Link:
    """`outer` stays on the machine, `inner` moves into the instance."""

    outer: str
    inner: str
    network: Network


def reserve(home: Path, cache: Path) -> Link:
    """Make the pair and take a free /24. Instances that start at once get different ones."""
    remove(home)
    outer, inner = names(home)
    cache.mkdir(parents=True, exist_ok=True)
    with _lock(cache / "network.lock"):
        link = Link(outer, inner, _free_network(home))
        run(["ip", "link", "add", outer, "type", "veth", "peer", "name", inner], purpose=PURPOSE)
        run(["ip", "addr", "add", f"{link.network.host}/24", "dev", outer], purpose=PURPOSE)
    run(["ip", "link", "set", outer, "mtu", "1400", "up"], purpose=PURPOSE)
    return link


def hand_over(link: Link, init_pid: int) -> None:
    run(["ip", "link", "set", link.inner, "netns", str(init_pid)], purpose=PURPOSE)


def remove(home: Path) -> None:
    """The pair is gone afterwards, whichever end was left."""
    for name in names(home):
        if Path("/sys/class/net", name).exists():
            with contextlib.suppress(DevclusterError):  # the kernel may be removing it right now
                run(["ip", "link", "del", name], purpose=PURPOSE)


def names(home: Path) -> tuple[str, str]:
    """Of the outer and the inner end; made from the folder, so a crash does not lose them."""
    mark = hashlib.sha256(str(home).encode()).hexdigest()[:8]
    return f"slc{mark}o", f"slc{mark}i"


def _free_network(home: Path) -> Network:
    used = set(_used())
    first = hashlib.sha256(str(home).encode()).digest()[0]
    for step in range(256):
        network = Network(f"{FIRST_TWO}.{(first + step) % 256}")
        if network.prefix not in used:
            return network
    raise DevclusterError(f"No free network below {FIRST_TWO} for the development cluster")


def _used() -> Iterator[str]:
    for interface in json.loads(run(["ip", "-4", "-j", "addr"], purpose=PURPOSE)):
        for address in interface.get("addr_info", []):
            yield str(address["local"]).rpartition(".")[0]


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
