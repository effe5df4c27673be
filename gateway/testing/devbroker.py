"""`python -m gateway.testing.devbroker SOCKET`: FakeBroker for `make dev`, in real time.

Each job prints a line when it starts and ends well after two minutes.
"""

import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gateway.broker.acts import ActsLog
from gateway.broker.app import Application
from gateway.broker.slots import Slots
from gateway.testing.fakebroker import FakeBroker
from gateway.testing.serving import UnixWsgiServer, handlers_of

RUN_SECONDS = 120.0
MAX_BODY_BYTES = 8 * 2**20


def main() -> None:
    """Serve until ended. Only this machine account may call."""
    path = Path(sys.argv[1]).absolute()
    path.parent.mkdir(parents=True, exist_ok=True)
    broker = FakeBroker(now=datetime.now(UTC), run_seconds=RUN_SECONDS)
    application = application_of(broker, path.parent)
    with UnixWsgiServer(path, _in_real_time(broker, application)) as server:
        server.serve_forever()


def application_of(broker: FakeBroker, folder: Path) -> Application:
    """The real WSGI application over a fake."""
    return Application(
        handlers=handlers_of(broker),
        acts=ActsLog(folder / "acts.log"),
        slots=Slots(folder / "slots", count=1, patience_seconds=1.0),
        file_slots=Slots(folder / "file-slots", count=1, patience_seconds=1.0),
        allowed_uids=frozenset({os.getuid()}),
        max_body_bytes=MAX_BODY_BYTES,
    )


def _in_real_time(broker: FakeBroker, application: Application) -> Callable[..., Any]:
    def answer(environ: dict[str, Any], start: Callable[..., object]) -> Any:
        broker.advance(max(0.0, (datetime.now(UTC) - broker.now).total_seconds()))
        return application(environ, start)

    return answer


if __name__ == "__main__":
    main()
