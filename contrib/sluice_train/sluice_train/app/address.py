"""The node's own address, and a listener on it."""

from __future__ import annotations

import errno
import ipaddress
import random
import re
import socket
import subprocess
from typing import TYPE_CHECKING

from sluice_train.app.errors import UNAVAILABLE, Unusable

if TYPE_CHECKING:
    from collections.abc import Mapping

ANSWER_SECONDS = 20
BACKLOG = 1024
TRIES = 50


def of_node(environment: Mapping[str, str]) -> str:
    """As Slurm reaches this node (NodeAddr): what the portal believes. Unusable: not told."""
    name = environment.get("SLURMD_NODENAME", "")
    try:
        done = subprocess.run(  # noqa: S603 - our own words
            ["scontrol", "show", "node", "-o", name],  # noqa: S607 - where it lies differs
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=ANSWER_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise Unusable(
            f"Slurm does not tell the address of {name}: {error}", UNAVAILABLE
        ) from error
    found = re.search(r"(?:^|\s)NodeAddr=(\S+)", done.stdout)
    if not found:
        raise Unusable(f"Slurm knows no address of {name}", UNAVAILABLE)
    return found[1]


def listen(address: str, ports: tuple[int, int]) -> socket.socket:
    """A listener on `address`, at a free port. Unusable: there is none within `ports`."""
    lowest, highest = ports
    tries = random.sample(range(lowest, highest + 1), k=min(TRIES, highest - lowest + 1))
    for port in tries:
        try:
            return _listen(_own(address), port)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise Unusable(f"cannot listen on {address}: {error}", UNAVAILABLE) from error
    raise Unusable(f"no port of {lowest}-{highest} is free on this node", UNAVAILABLE)


def _own(address: str) -> str:
    """The address of an interface of this node; of every one where the name tells none.

    Some nodes know themselves as 127.0.1.1, and some are reached through an address that is not
    theirs; nobody else would find the door there.
    """
    family, _, _, _, place = socket.getaddrinfo(address, None, type=socket.SOCK_STREAM)[0]
    host = str(place[0])
    everywhere = "::" if family == socket.AF_INET6 else "0.0.0.0"  # noqa: S104 - the key guards it
    if ipaddress.ip_address(host).is_loopback:
        return everywhere
    try:
        _listen(host, 0).close()
    except OSError:
        return everywhere
    return host


def _listen(host: str, port: int) -> socket.socket:
    found = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        found.setblocking(False)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
        found.listen(BACKLOG)
    except BaseException:
        found.close()
        raise
    return found


def free_port() -> int:
    """A port of 127.0.0.1 that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
