"""gunicorn's worker, with a look at who knocks before a byte is waited for."""

import contextlib
import json
import logging
import socket
from typing import Any

from gunicorn.workers.sync import SyncWorker  # type: ignore[import-untyped]  # ships no types

from gateway.broker.peer import peer_of
from gateway.wire.codec import dump
from gateway.wire.messages import Failure

_log = logging.getLogger("gateway.broker")


class Worker(SyncWorker):  # type: ignore[misc]
    """Anyone may knock, and gunicorn waits for a request's head as long as it takes: as many
    silent strangers as there are workers would keep everybody out until the kill timeout."""

    def handle(self, listener: Any, client: socket.socket, addr: Any) -> None:
        peer = peer_of(client)
        if peer.uid in self.wsgi.allowed_uids:
            super().handle(listener, client, addr)
            return
        _log.warning("turned away a caller with uid %d, pid %d", peer.uid, peer.pid)
        turn_away(client)


def turn_away(client: socket.socket) -> None:
    """Refuse without reading. It fits into the socket's buffer, so that nobody can hold it up."""
    body = json.dumps(dump(Failure("caller_refused", "not a caller of ours"))).encode()
    head = f"HTTP/1.1 403 Failure\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    with client, contextlib.suppress(OSError):
        client.setblocking(False)
        client.sendall(head.encode() + body)
