"""The broker's WSGI side over a FakeBroker, on a real Unix socket: all but gunicorn and Slurm."""

import socketserver
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from gateway.brokerclient.port import Broker
from gateway.wire import messages as m
from gateway.wire import policy as p
from gateway.wire.folders import MadeFolder

Wsgi = Callable[..., Any]


def handlers_of(broker: Broker) -> Mapping[str, Callable[[Any], object]]:
    """The verbs over any implementation of the port."""

    def done(act: Callable[..., None]) -> Callable[[Any], m.Done]:
        def handle(asked: Any) -> m.Done:
            act(asked.job_id, user=asked.user)
            return m.Done()

        return handle

    def set_time_limit(asked: m.TimeLimitRequest) -> m.Done:
        broker.set_time_limit(asked.job_id, user=asked.user, minutes=asked.time_limit_minutes)
        return m.Done()

    def extend(asked: m.TimeLimitRequest) -> m.Done:
        broker.extend(asked.job_id, user=asked.user, minutes=asked.time_limit_minutes)
        return m.Done()

    return {
        "submit": broker.submit,
        "find": lambda a: m.Found(broker.find(a.token, user=a.user, since=a.since)),
        "cancel": done(broker.cancel),
        "cancel-array": done(broker.cancel_array),
        "hold": done(broker.hold),
        "release": done(broker.release),
        "requeue": done(broker.requeue),
        "set-time-limit": set_time_limit,
        "extend": extend,
        "queue": lambda _: broker.queue(),
        "nodes": lambda _: m.Nodes(broker.nodes()),
        "partitions": lambda _: m.Partitions(broker.partitions()),
        "associations": lambda _: m.Associations(broker.associations()),
        "qos": lambda _: p.QosList(broker.qos()),
        "estimate": broker.estimate,
        "accounting": lambda a: broker.accounting(since=a.since, until=a.until),
        "read-file": lambda a: broker.read_file(
            a.path, user=a.user, offset=a.offset, max_bytes=a.max_bytes
        ),
        "check-folder": lambda a: broker.check_folder(a.path, user=a.user),
        "list-folder": lambda a: broker.list_folder(a.path, user=a.user, most=a.most),
        "make-folder": lambda a: MadeFolder(broker.make_folder(a.path, a.files, user=a.user)),
        "group-limits": lambda _: m.GroupLimitsList(broker.group_limits()),
        "set-group-limits": broker.set_group_limits,
        "hold-admin": done(broker.hold_admin),
        "release-admin": done(broker.release_admin),
        "accounting-facts": lambda _: broker.accounting_facts(),
        **_policy_handlers(broker),
    }


def _policy_handlers(broker: Broker) -> Mapping[str, Callable[[Any], object]]:
    return {
        "set-qos": broker.set_qos,
        "accounts": lambda _: p.Accounts(broker.accounts()),
        "set-group-policy": broker.set_group_policy,
        "set-shares": lambda asked: p.SharesNow(broker.set_shares(asked)),
        "fair-shares": lambda _: p.FairShares(broker.fair_shares()),
        "priorities": lambda _: broker.priorities(),
        "reservations": lambda _: p.Reservations(broker.reservations()),
        "add-member": lambda asked: broker.add_member(asked.account, asked.user),
        "remove-member": lambda asked: broker.remove_member(asked.account, asked.user),
        "set-member": broker.set_member,
        "volumes": lambda _: broker.volumes(),
        "make-volume": broker.make_volume,
        "set-volume-limit": broker.set_volume_limit,
    }


class UnixWsgiServer(socketserver.UnixStreamServer):
    """One request at a time, as one worker of the broker."""

    def __init__(self, path: Path, app: Wsgi) -> None:
        path.unlink(missing_ok=True)
        self.app = app
        super().__init__(str(path), _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: Any
    timeout = 10

    def handle(self) -> None:
        self.raw_requestline = self.rfile.readline(65537)
        if not self.raw_requestline or not self.parse_request():
            return
        environ = {
            "REQUEST_METHOD": self.command,
            "PATH_INFO": self.path,
            "CONTENT_LENGTH": self.headers.get("content-length", ""),
            "wsgi.input": self.rfile,
            "gunicorn.socket": self.connection,
        }
        if "transfer-encoding" in self.headers:
            environ["HTTP_TRANSFER_ENCODING"] = self.headers["transfer-encoding"]
        heads: list[str] = []

        def start(status: str, headers: list[tuple[str, str]]) -> None:
            heads.append(f"HTTP/1.1 {status}")
            heads.extend(f"{name}: {value}" for name, value in headers)

        body = b"".join(self.server.app(environ, start))
        self.wfile.write("\r\n".join([*heads, "", ""]).encode() + body)


@contextmanager
def served(app: Wsgi, path: Path) -> Iterator[Path]:
    """Serve in a thread until the block ends."""
    with UnixWsgiServer(path, app) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield path
        finally:
            server.shutdown()
            thread.join()
