"""What gunicorn is told beyond its options: `--config python:gateway.cli.serving`."""

import gc
import logging
import socket
import struct
import sys
from typing import Any

SWITCH_SECONDS = 0.0005
# A thread waits no longer than this for more of a request, or for a client to take an answer.
READ_SECONDS = 10
WRITE_SECONDS = 30


def when_ready(server: Any) -> None:
    """Before the workers are forked: what is loaded stays, so no collection walks it again.

    Else each full one takes 30 to 50 ms out of somebody's page, and unshares the memory.
    """
    for listener in server.LISTENERS:
        _hurry(listener.sock)
    gc.collect()
    gc.freeze()
    # gunicorn writes plain lines to a stream of its own: let them go where all others go.
    for name in ("gunicorn.error", "gunicorn.access"):
        logger = logging.getLogger(name)
        logger.handlers = []
        logger.propagate = True


def post_worker_init(_worker: Any) -> None:
    """A thread that comes back from the database takes its turn at once.

    With Python's 5 ms it waits that long after each statement while another one computes, and
    with it wait all who want the write lock that it holds.
    """
    sys.setswitchinterval(SWITCH_SECONDS)


def _hurry(listener: socket.socket) -> None:
    """Idle and stalled clients keep no thread; accepted connections inherit it from the listener.

    Browsers open connections ahead of need, and each would hold one of the few threads for
    seconds. The kernel hands one over only when there is something to read.
    """
    for option, seconds in (
        (socket.SO_RCVTIMEO, READ_SECONDS),
        (socket.SO_SNDTIMEO, WRITE_SECONDS),
    ):
        listener.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", seconds, 0))
    if listener.family in {socket.AF_INET, socket.AF_INET6}:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, READ_SECONDS)
