"""What gunicorn is told beyond its options: `--config python:gateway.cli.serving`."""

import gc
import logging
import sys
from typing import Any

SWITCH_SECONDS = 0.0005


def when_ready(_server: Any) -> None:
    """Before the workers are forked: what is loaded stays, so no collection walks it again.

    Else each full one takes 30 to 50 ms out of somebody's page, and unshares the memory.
    """
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
