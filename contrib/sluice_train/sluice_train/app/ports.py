"""Whose a port of 127.0.0.1 is."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path

_LISTENS = "0A"
_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")


def is_free(port: int) -> bool:
    """Whether one could listen there now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def is_ours(port: int) -> bool:
    """Whether all that listen at the port are of this person."""
    owners = set()
    for table in _TABLES:
        with suppress(OSError):
            for line in Path(table).read_text().splitlines()[1:]:
                words = line.split()
                if words[3] == _LISTENS and int(words[1].rpartition(":")[2], 16) == port:
                    owners.add(int(words[7]))
    return owners == {os.getuid()}
