"""Who is at the other end of the Unix socket: the kernel's word, not the caller's."""

import socket
import struct
from dataclasses import dataclass

_UCRED = struct.Struct("3i")  # struct ucred of unix(7): pid, uid, gid


@dataclass(frozen=True, slots=True)
class Peer:
    pid: int
    uid: int
    gid: int


def peer_of(connection: socket.socket) -> Peer:
    """The credentials that the caller had when it connected."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
    return Peer(*_UCRED.unpack(raw))
