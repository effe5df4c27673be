"""Applications through a real nginx: who is let through, what goes with a request, what does not,
and paths that try to lead elsewhere. The door is a small server of ours that says what it got."""

import asyncio
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from werkzeug.serving import make_server

from gateway.cli import front
from gateway.cli.nginx_conf import Front, whole
from gateway.cli.nginx_conf import site as written
from gateway.core.apps import ready_path
from gateway.services import apps
from gateway.testing.apps_site import KEY, open_app, row_of, write_ready
from gateway.web.frontdoor import word
from sluice_train.app import client
from sluice_train.app.door import Answer
from sluice_train.app.door import Door as RealDoor

PROGRAM = front.nginx()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="nginx is not installed")


class Door(ThreadingHTTPServer):
    """Asks for the key as the real one does; then tells the request as JSON, or echoes bytes."""

    daemon_threads = True

    key: str | None

    def __init__(self, key: str = KEY) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.key = key
        self.set_cookie = ""
        self.extra: dict[str, str] = {}
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def end(self) -> None:
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: Door
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Quiet."""

    def do_GET(self) -> None:
        if self.headers.get("X-Sluice-Key") != self.server.key:
            self._say(403, {"error": "forbidden"})
            return
        if self.headers.get("Upgrade") == "websocket":
            self._echo()
            return
        size = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(size)
        self._say(
            404 if "missing" in self.path else 200,
            {
                "path": self.path,
                "method": self.command,
                "headers": [[name, value] for name, value in self.headers.items()],
                "bytes": len(body),
            },
        )

    do_POST = do_PUT = do_GET

    def _echo(self) -> None:
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.end_headers()
        self.wfile.flush()
        with suppress(OSError):
            while data := self.connection.recv(65_536):
                self.connection.sendall(data)
        self.close_connection = True

    def _say(self, status: int, facts: dict[str, Any]) -> None:
        body = json.dumps(facts).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", "application/json")
        if self.server.set_cookie:
            self.send_header("Set-Cookie", self.server.set_cookie)
        for name, value in self.server.extra.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


@dataclass
class Through:
    """The portal behind nginx, with an application of nlp-1 at `base`."""

    port: int
    site: Any
    door: Door
    slurm_id: int
    submission_id: int
    nginx: "subprocess.Popen[bytes]"
    start: Any
    cookies: dict[str, str] = field(default_factory=dict)

    @property
    def base(self) -> str:
        return f"/apps/{self.slurm_id}/"

    def ask(
        self,
        path: str,
        login: str | None = "nlp-1",
        *,
        method: str = "GET",
        body: bytes = b"",
        **headers: str,
    ) -> tuple[int, http.client.HTTPResponse, bytes]:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if login is not None:
            own = f"sluice={self.cookie(login)}"
            sent["Cookie"] = f"{own}; {sent['Cookie']}" if "Cookie" in sent else own
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)) as line:
            line.request(method, path, body=body or None, headers=sent)
            answer = line.getresponse()
            return answer.status, answer, answer.read()

    def got(self, path: str, login: str = "nlp-1", **more: Any) -> dict[str, Any]:
        status, _, body = self.ask(path, login, **more)
        assert status == 200, (status, body)
        found: dict[str, Any] = json.loads(body)
        return found

    def cookie(self, login: str) -> str:
        if login not in self.cookies:
            browser = self.site.signed_in(login)
            self.cookies[login] = browser.client.get_cookie("sluice").value
        return self.cookies[login]

    def socket(self, login: str = "nlp-1") -> socket.socket:
        """A connection after its upgrade."""
        line = socket.create_connection(("127.0.0.1", self.port), timeout=10)
        head = (
            f"GET {self.base}api/ws HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n"
            f"Upgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Cookie: sluice={self.cookie(login)}\r\n\r\n"
        )
        line.sendall(head.encode())
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += line.recv(4096)
        assert answer.startswith(b"HTTP/1.1 101"), answer
        return line


def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until(what: Any, seconds: float = 15) -> None:
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.05)


def answers(port: int) -> bool:
    with suppress(OSError), closing(socket.create_connection(("127.0.0.1", port), timeout=1)):
        return True
    return False


@pytest.fixture
def through(site: Any, tmp_path: Path) -> Iterator[Through]:
    door, port = Door(), free_port()
    app = open_app(site, port=door.port)
    server = make_server("127.0.0.1", 0, site.app, threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    home, place = Path(site.app.extensions["sluice"].settings.home), tmp_path / "nginx"
    place.mkdir(mode=0o700)
    made = Front(
        listen=f"127.0.0.1:{port}",
        web=f"127.0.0.1:{server.port}",
        word=word(home),
        folder=str(place),
        read_seconds=20,
    )
    config = tmp_path / "nginx.conf"
    config.write_text(whole(made, workers=1, as_root=os.geteuid() == 0))

    def start() -> "subprocess.Popen[bytes]":
        argv = [str(PROGRAM), "-e", "stderr", "-p", str(place), "-c", str(config)]
        return subprocess.Popen(argv, process_group=0)

    nginx = start()
    found = Through(port, site, door, app.slurm_id, app.submission_id, nginx, start)
    wait_until(lambda: answers(port))
    yield found
    with suppress(ProcessLookupError):
        os.killpg(found.nginx.pid, signal.SIGKILL)
    found.nginx.wait()
    server.shutdown()
    server.server_close()
    door.end()


def test_the_owner_gets_through_and_nothing_of_the_portal_goes_with_it(through: Through) -> None:
    found = through.got(
        f"{through.base}lab/tree/a%20b%2Fc?x=%2e%2e&y=1",
        Cookie="_xsrf=2|abc; sluice=planted; other=1",
        X_Sluice_Key="guessed",
        X_Forwarded_For="203.0.113.9",
        X_Sluice_Proxy="guessed",
    )
    sent = [(name.lower(), value) for name, value in found["headers"]]
    headers = dict(sent)
    assert found["path"] == f"{through.base}lab/tree/a%20b%2Fc?x=%2e%2e&y=1"
    assert "sluice=" not in headers["cookie"]
    assert through.cookie("nlp-1") not in json.dumps(sent)
    assert "_xsrf=2|abc" in headers["cookie"]
    assert "other=1" in headers["cookie"]
    assert headers["x-forwarded-for"] == "127.0.0.1"
    assert headers["x-forwarded-proto"] == "http"
    assert headers["x-forwarded-host"] == headers["host"] == f"127.0.0.1:{through.port}"
    assert "x-sluice-proxy" not in headers
    assert [value for name, value in sent if name == "x-sluice-key"] == [KEY]


@pytest.mark.parametrize(
    "cookie",
    [
        "sluice=planted; sluice=again; sluice=third",
        "a=1; sluice =x; b=2; sluice= y",
        "sluice=planted;sluice=again",
        "xsluice=keep; sluice=x",
    ],
)
def test_no_way_of_writing_it_brings_the_portals_cookie_to_an_application(
    through: Through, cookie: str
) -> None:
    found = through.got(f"{through.base}x", Cookie=cookie)
    kept = {name.lower(): value for name, value in found["headers"]}.get("cookie", "")
    assert not re.search(r"(?:^|;)\s*sluice\s*=", kept)
    assert through.cookie("nlp-1") not in kept


def test_strangers_are_sent_to_sign_in_and_others_get_404(through: Through) -> None:
    status, answer, _ = through.ask(through.base, None)
    assert status == 302
    assert answer.headers["Location"].startswith("/sign-in")
    status, _, body = through.ask(through.base, "nlp-2")
    assert status == 404
    assert b"nginx" not in body
    assert through.ask("/apps/999999/", "nlp-1")[0] == 404


def test_an_administrator_is_nobodys_guest(through: Through) -> None:
    assert through.ask(through.base, "boss")[0] == 404


def test_who_was_named_gets_in_after_agreeing_and_not_any_more_when_taken_back(
    through: Through,
) -> None:
    place = f"/notebooks/{through.submission_id}"
    owner, guest = through.site.signed_in("nlp-1"), through.site.signed_in("nlp-2")
    assert owner.post(f"{place}/share", {"login": "nlp-2"}).status_code == 303
    status, answer, _ = through.ask(through.base, "nlp-2")
    assert (status, answer.headers["Location"]) == (302, place)  # first: whom one trusts
    assert "trust" in guest.get(place).text
    assert guest.post(f"{place}/agree").status_code == 303
    assert through.got(through.base, "nlp-2")["path"] == through.base
    assert through.ask(through.base, "vision-1")[0] == 404
    assert owner.post(f"{place}/unshare", {"login": "nlp-2"}).status_code == 303
    wait_until(lambda: through.ask(through.base, "nlp-2")[0] == 404, seconds=5)


@pytest.fixture
def real_door(through: Through) -> Iterator[None]:
    """The door as it is on nodes, between nginx and what answers here."""
    loop, listener = asyncio.new_event_loop(), socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    door = RealDoor(
        listener,
        key=KEY,
        base=through.base,
        strips=False,
        reach=lambda: client.connect(("127.0.0.1", through.door.port)),
        own=lambda method, name: Answer(404, {}),
    )
    through.door.key = None  # the real one takes it out
    write_ready(through.site, through.slurm_id, port=listener.getsockname()[1])
    through.site.signed_in("nlp-1").get(f"/notebooks/{through.submission_id}")
    task = loop.create_task(door.serve())
    thread = threading.Thread(
        target=lambda: loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
    )
    thread.start()
    yield
    loop.call_soon_threadsafe(task.cancel)
    thread.join()
    loop.close()
    listener.close()


@pytest.mark.usefixtures("real_door")
def test_what_a_guest_has_open_ends_when_taken_back_and_the_owners_does_not(
    through: Through,
) -> None:
    place = f"/notebooks/{through.submission_id}"
    owner, guest = through.site.signed_in("nlp-1"), through.site.signed_in("nlp-2")
    owner.post(f"{place}/share", {"login": "nlp-2"})
    guest.post(f"{place}/agree")
    with through.socket("nlp-2") as theirs, through.socket("nlp-1") as own:
        theirs.sendall(b"one")
        assert theirs.recv(16) == b"one"
        page = owner.post(f"{place}/unshare", {"login": "nlp-2"}, follow_redirects=True)
        assert "nothing more is let through" in page.text
        assert theirs.recv(16) == b""
        # nginx still remembers that they may come in; the door does not let them.
        assert through.ask(through.base, "nlp-2")[0] in {403, 404}
        wait_until(lambda: through.ask(through.base, "nlp-2")[0] == 404, seconds=5)
        own.sendall(b"two")
        assert own.recv(16) == b"two"


@pytest.mark.usefixtures("real_door")
def test_what_a_session_has_open_ends_with_it(through: Through) -> None:
    session = through.site.signed_in("nlp-1")
    through.cookies["nlp-1"] = session.client.get_cookie("sluice").value
    with through.socket() as line:
        through.site.signed_in("nlp-1").post("/sign-out")  # another one of theirs
        line.sendall(b"one")
        assert line.recv(16) == b"one"
        session.post("/sign-out")
        assert line.recv(16) == b""
    wait_until(lambda: through.ask(through.base)[0] == 302, seconds=5)


def test_a_door_that_does_not_answer_is_said_when_a_guest_is_taken_back(through: Through) -> None:
    place = f"/notebooks/{through.submission_id}"
    owner = through.site.signed_in("nlp-1")
    owner.post(f"{place}/share", {"login": "nlp-2"})
    through.door.end()
    page = owner.post(f"{place}/unshare", {"login": "nlp-2"}, follow_redirects=True)
    assert "its node did not answer" in page.text
    assert through.ask(through.base, "nlp-2")[0] == 404


TRICKS = [
    "/apps/{other}/../{job}/x",
    "/apps/{other}/%2e%2e/{job}/x",
    "/apps/{other}/%2E%2e/{job}/x",
    "/apps/{other}/..%2f{job}/x",
    "/apps/{other}%2f..%2f{job}/x",
    "/apps/{other}/.%2e/{job}/x",
    "//apps/{job}/x",
    "/apps//{job}/x",
    "/apps/./{job}/x",
    "/%61pps/{job}/x",
    "/apps/%3{digit}{rest}/x",
    "/apps%2f{job}/x",
    "/x/../apps/{job}/x",
    "/apps/0{job}/x",
    "/apps/{job}%20/x",
    "/apps/{job};/x",
]


@pytest.mark.parametrize("trick", TRICKS)
def test_a_path_means_what_is_written_in_it_or_nothing(through: Through, trick: str) -> None:
    job = str(through.slurm_id)
    path = trick.format(job=job, other=through.slurm_id + 1, digit=job[0], rest=job[1:])
    status, _, body = through.ask(path)
    assert status in {400, 404}, (path, status)
    assert b'"headers"' not in body  # the door was not reached


def test_a_path_that_stays_below_the_application_is_its_own_affair(through: Through) -> None:
    for rest in ("..;/x", "a/..%2f..%2fx", "a//b", "%2e%2e%2fx"):
        status, _, body = through.ask(through.base + rest)
        assert status in {200, 400, 404}
        if status == 200:
            assert json.loads(body)["path"] == through.base + rest


@pytest.mark.parametrize(
    "path",
    ["/apps-gate/{job}", "/apps-gate", "//apps-gate/{job}", "/apps%2dgate/{job}",
     "/x/../apps-gate/{job}",
     "/apps-gate/../apps-gate/{job}", "/./apps-gate/{job}", "/apps-gate/{job}/"],
)  # fmt: skip
def test_nobody_outside_asks_the_gate(through: Through, path: str) -> None:
    status, answer, body = through.ask(path.format(job=through.slurm_id), X_Sluice_Proxy="0" * 64)
    assert status in {400, 404}
    assert KEY.encode() not in body + str(answer.headers).encode()


def test_the_gate_says_nothing_without_the_word_of_nginx(through: Through) -> None:
    browser = through.site.signed_in("nlp-1")
    answer = browser.get(f"/apps-gate/{through.slurm_id}")
    assert answer.status_code == 404
    assert KEY not in answer.text + str(answer.headers)


def test_another_host_name_opens_nothing_more(through: Through) -> None:
    status, answer, _ = through.ask(through.base, None, Host="evil.example")
    assert status == 302
    assert answer.headers["Location"].startswith("/sign-in")
    assert through.ask(through.base, "nlp-2", Host=f"127.0.0.1:{through.port}@x")[0] in {400, 404}


def test_an_application_keeps_its_cookies_and_redirects_to_itself(through: Through) -> None:
    through.door.set_cookie = "name=1; Path=/; Domain=example.org"
    through.door.extra = {
        "X-Accel-Redirect": f"/apps-gate/{through.slurm_id}",
        "X-Accel-Limit-Rate": "1",
    }
    status, answer, body = through.ask(through.base + "x")
    assert (status, json.loads(body)["path"]) == (200, through.base + "x")
    assert f"path={through.base}" in answer.headers["Set-Cookie"].lower()
    assert "example.org" not in answer.headers["Set-Cookie"]
    assert all("sluice=" not in one for one in answer.headers.get_all("Set-Cookie") or [])


def test_an_applications_own_404_is_its_own_and_uploads_have_no_limit(through: Through) -> None:
    status, _, body = through.ask(through.base + "missing")
    assert (status, body[:1]) == (404, b"{"), body[:300]
    assert json.loads(body)["method"] == "GET"
    large = b"x" * (9 * 2**20)
    status, _, body = through.ask(through.base + "up", method="PUT", body=large)
    assert status == 200, body[:300]
    assert json.loads(body)["bytes"] == len(large)


def test_a_door_that_is_gone_is_said_in_words_in_both_languages(through: Through) -> None:
    through.door.end()
    status, _, body = through.ask(through.base + "lab", Accept_Language="en")
    assert status == 503
    assert b"does not answer" in body
    assert f"/notebooks/{through.submission_id}".encode() in body
    assert b"nginx" not in body
    status, _, body = through.ask(through.base + "lab", Accept_Language="zh-CN")
    assert status == 503
    assert "没有响应" in body.decode()


def test_an_application_that_moved_is_found_again(through: Through) -> None:
    """Requeued, it has another port and another key: its file says so."""
    through.door.end()
    moved = Door("B" * 43)

    write_ready(through.site, through.slurm_id, port=moved.port, key="B" * 43)
    status, answer, _ = through.ask(through.base + "lab")
    assert (status, answer.headers["Location"]) == (302, through.base)
    wait_until(lambda: through.ask(through.base)[0] == 200, seconds=6)
    moved.end()


def test_open_sockets_outlive_a_reload_and_a_killed_proxy_comes_back(through: Through) -> None:
    with through.socket() as line:
        _outlive(through, line)


def _outlive(through: Through, line: socket.socket) -> None:
    line.sendall(b"one")
    assert line.recv(16) == b"one"
    through.nginx.send_signal(signal.SIGHUP)
    time.sleep(1)
    line.sendall(b"two")
    assert line.recv(16) == b"two"
    assert through.got(through.base)["path"] == through.base  # new ones meanwhile
    os.killpg(through.nginx.pid, signal.SIGKILL)
    through.nginx.wait()
    with suppress(ConnectionResetError):
        assert line.recv(16) == b""  # its browser sees that, and connects anew
    through.nginx = through.start()
    wait_until(lambda: answers(through.port))
    with through.socket() as again:
        again.sendall(b"three")
        assert again.recv(16) == b"three"


def test_the_file_of_an_owner_is_believed_only_within_the_cluster(through: Through) -> None:

    have = through.site.app.extensions["sluice"]
    for wrong in ({"address": "203.0.113.5"}, {"port": 22}, {"port": 1023}, {"key": "short"},
                  {"address": "127.0.0.1.evil.example"}, {"at": 1.0}):  # fmt: skip
        write_ready(through.site, through.slurm_id, **{"port": 4000, **wrong})
        row = row_of(through.site, through.submission_id)
        looked = apps.look(row, begin=have.begin, read=have.read, broker=have.broker)
        assert looked.door == row.door, wrong
    text = through.site.broker.files.contents[ready_path("/home/nlp-1", through.slurm_id)]
    assert b"4000" in text  # it was there to be read


def test_a_site_may_say_what_it_is_called() -> None:
    made = Front("443", "127.0.0.1:8000", "0" * 64, "/var/cache/x", 20, names=("gpu.example",))

    assert "return 421" in written(made)
    for wrong in ({"listen": "1;"}, {"web": "a b:1"}, {"names": ("a;b",)}, {"folder": "/x y"},
                  {"word": "x"}, {"certificate": "/x{"}):  # fmt: skip
        with pytest.raises(ValueError, match="another way"):
            Front(**{"listen": "443", "web": "1.2.3.4:1", "word": "0" * 64, "folder": "/v",
                     "read_seconds": 1, **wrong})  # fmt: skip
