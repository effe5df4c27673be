"""The door of an application against clients that are slow, cut short, or have no key."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from app_programs import Job, read_all, until
from hypothesis import given
from hypothesis import strategies as st

from sluice_train.app import client, head
from sluice_train.app.door import Answer, Door


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Job]:
    """An echo behind its door."""
    found = Job(tmp_path_factory.mktemp("door")).echo("{base}")
    found.ready()
    yield found
    found.kill()


def _body(answer: bytes) -> dict[str, object]:
    found: dict[str, object] = json.loads(answer.partition(b"\r\n\r\n")[2])
    return found


def _status(answer: bytes) -> int:
    return int(answer.split(b" ")[1])


def test_the_program_sees_the_request_without_the_key(job: Job) -> None:
    told = _body(job.ask("/apps/7/a?b=%2e%2e", "Accept: x", "Connection: keep-alive"))
    assert told["path"] == "/apps/7/a?b=%2e%2e"
    headers = told["headers"]
    assert isinstance(headers, dict)
    assert {name.lower(): value for name, value in headers.items()} == {
        "host": "portal",
        "accept": "x",
        "connection": "close",
    }


def test_an_upgrade_keeps_its_connection(job: Job) -> None:
    lines = ("Connection: keep-alive, Upgrade", "Upgrade: websocket")
    with job.connect() as found:
        found.sendall(job.request("/apps/7/ws", *lines))
        found.shutdown(socket.SHUT_WR)
        headers = _body(read_all(found))["headers"]
    assert isinstance(headers, dict)
    assert headers["connection"] == "keep-alive, Upgrade"
    assert headers["upgrade"] == "websocket"


def test_who_is_sent_away_loses_what_is_open_and_others_keep_it(job: Job) -> None:
    def opened(who: str) -> socket.socket:
        line = job.connect()
        lines = ("Connection: keep-alive, Upgrade", "Upgrade: websocket", f"X-Sluice-Who: {who}")
        line.sendall(job.request("/apps/7/ws", *lines))
        answer = b""
        while not answer.endswith(b"}}"):
            answer += line.recv(65_536)
        assert b"x-sluice-who" not in answer.lower()
        return line

    def cut(who: str) -> bytes:
        return job.ask(f"/apps/7/.sluice/cut{who}", method="POST")

    with opened("12.5") as one, opened("12.6") as two, opened("1.5") as other:
        assert _body(cut("?who=12.5")) == {"closed": 1}
        assert read_all(one) == b""
        assert _status(job.ask("/apps/7/", "X-Sluice-Who: 12.5")) == 403  # also from a cache
        assert _status(job.ask("/apps/7/", "X-Sluice-Who: 12.7")) == 200
        assert _body(cut("?who=12")) == {"closed": 1}
        assert read_all(two) == b""
        assert _status(job.ask("/apps/7/", "X-Sluice-Who: 12.7")) == 403
        other.settimeout(0.3)
        with pytest.raises(TimeoutError):
            other.recv(1)
        assert _body(cut("?who=1")) == {"closed": 1}
    for wrong in ("", "?who=", "?x=12"):
        assert _status(cut(wrong)) == 400
    assert _status(job.ask("/apps/7/.sluice/cut?who=1")) == 404
    assert _status(job.ask("/apps/7/.sluice/cut?who=1", method="POST", key="no")) == 403


@pytest.mark.parametrize("key", ["", "no", "k" * 43, "ключ"])
def test_without_the_key_there_is_only_403(job: Job, key: str) -> None:
    assert _status(job.ask("/apps/7/", key=key)) == 403


def test_no_key_and_two_keys_are_403(job: Job) -> None:
    assert _status(job.send(b"GET /apps/7/ HTTP/1.1\r\nHost: x\r\n\r\n")) == 403
    key = job.ready()["key"]
    assert _status(job.ask("/apps/7/", f"X-Sluice-Key: {key}")) == 403


@pytest.mark.parametrize(
    "line",
    [
        b"GET  /apps/7/ HTTP/1.1",
        b"GET apps/7/ HTTP/1.1",
        b"GET http://else/ HTTP/1.1",
        b"GET /apps/7/\x00 HTTP/1.1",
        b"get /apps/7/ HTTP/1.1",
        b"GET /apps/7/ HTTP/2",
        b"GET /apps/7/\xc3\xa9 HTTP/1.1",
        b"GET /apps/7/ HTTP/1.1\r\nno colon",
        b"GET /apps/7/ HTTP/1.1\r\nfolded: a\r\n b",
        b"GET /apps/7/ HTTP/1.1\r\nname : a",
        b"GET /apps/7/ HTTP/1.1\r\nbare: a\nX-Sluice-Key: b",
        b"\x16\x03\x01\x02\x00\x01",
    ],
)
def test_what_is_no_head_is_400(job: Job, line: bytes) -> None:
    assert _status(job.send(line + b"\r\n\r\n")) == 400


@pytest.mark.parametrize("path", ["/apps/8/", "/apps/7", "/", "/apps/07/", "/apps/%37/"])
def test_another_path_is_not_there(job: Job, path: str) -> None:
    assert _status(job.ask(path)) == 404


def test_a_long_head_passes_and_a_longer_one_is_431(job: Job) -> None:
    assert _status(job.ask("/apps/7/", f"X-Long: {'a' * 10_000}")) == 200
    with job.connect() as found:
        found.sendall(job.request("/apps/7/", f"X-Long: {'a' * 70_000}"))
        assert _status(read_all(found)) == 431


def test_a_cut_head_and_one_byte_at_a_time(job: Job) -> None:
    whole = job.request("/apps/7/slow")
    with job.connect() as found:
        found.sendall(whole[:20])
    with job.connect() as found:
        for byte in whole:
            found.sendall(bytes([byte]))
        assert _body(read_all(found))["path"] == "/apps/7/slow"


def test_a_second_request_on_the_connection_is_not_answered(job: Job) -> None:
    one = job.request("/apps/7/one")
    answer = job.send(one + job.request("/apps/7/.sluice/state") + job.request("/apps/7/two"))
    assert answer.count(b"HTTP/1.1 ") == 1
    assert _body(answer)["path"] == "/apps/7/one"


def test_the_pages_of_the_door_itself(job: Job) -> None:
    state = _body(job.ask("/apps/7/.sluice/state?now"))
    assert (state["phase"], state["connections"]) == ("ready", 0)
    assert _status(job.ask("/apps/7/.sluice/keep")) == 405
    assert _status(job.ask("/apps/7/.sluice/keep", "Content-Length: 0", method="POST")) == 200
    assert _status(job.ask("/apps/7/.sluice/save", "Content-Length: 0", method="POST")) == 409
    assert _status(job.ask("/apps/7/.sluice/other")) == 404
    assert _status(job.ask("/apps/7/.sluice/state", key="no")) == 403


def test_strangers_that_wait_do_not_keep_others_out(job: Job) -> None:
    """The oldest of those without a key make room."""
    waiting = [job.connect() for _ in range(300)]
    try:
        assert _status(job.ask("/apps/7/")) == 200
        until(lambda: _is_closed(waiting[0]), 5, lambda: "the first stranger is still there")
    finally:
        for found in waiting:
            found.close()


def _is_closed(found: socket.socket) -> bool:
    found.settimeout(0.01)
    try:
        return found.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionResetError:
        return True


class Behind:
    """A door in this process, before a listener that the test plays itself."""

    def __init__(self, place: Path) -> None:
        self.program = socket.socket(socket.AF_UNIX)
        self.program.bind(str(place))
        self.program.listen(8)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.setblocking(False)
        self.place = str(place)
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        async def serve() -> None:
            self.door = Door(
                self.listener,
                key="key",
                base="/",
                strips=False,
                reach=lambda: client.connect(self.place),
                own=lambda method, name: Answer(200, {}),
            )
            self.task = asyncio.ensure_future(self.door.serve())
            await asyncio.gather(self.task, return_exceptions=True)

        self.loop.run_until_complete(serve())
        self.loop.close()

    def joined(self) -> tuple[socket.socket, socket.socket]:
        """A client that has shown its key, and the program's end of its connection."""
        browser = socket.create_connection(self.listener.getsockname(), timeout=20)
        browser.sendall(b"GET / HTTP/1.1\r\nX-Sluice-Key: key\r\n\r\n")
        program, _ = self.program.accept()
        program.settimeout(20)
        assert program.recv(1000) == b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n"
        return browser, program

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.task.cancel)
        self.thread.join()
        self.program.close()
        self.listener.close()


@pytest.fixture
def behind(tmp_path: Path) -> Iterator[Behind]:
    found = Behind(tmp_path / "program")
    yield found
    found.close()


@pytest.mark.parametrize("downwards", [True, False])
def test_a_slow_reader_holds_the_sender_and_gets_all(behind: Behind, downwards: bool) -> None:
    """Neither the door nor anybody else keeps what the reader does not take."""
    browser, program = behind.joined()
    source, sink = (program, browser) if downwards else (browser, program)
    source.setblocking(False)
    sent = _fill(source)
    assert sent < 16_000_000  # buffers of the sockets, and of the door
    other_client, other_program = behind.joined()  # others go on meanwhile
    other_program.sendall(b"still")
    assert other_client.recv(10) == b"still"
    got = 0
    while got < sent:
        got += len(sink.recv(1_000_000))
    assert got == sent
    for found in (browser, program, other_client, other_program):
        found.close()


def _fill(source: socket.socket) -> int:
    """Send until nobody takes any more for half a second."""
    sent, silent_since = 0, time.monotonic()
    while time.monotonic() - silent_since < 0.5:
        try:
            sent += source.send(b"x" * 100_000)
            silent_since = time.monotonic()
        except BlockingIOError:
            time.sleep(0.01)
        assert sent < 100_000_000
    return sent


def test_the_end_of_either_side_is_the_end_of_the_other(behind: Behind) -> None:
    browser, program = behind.joined()
    program.close()
    assert browser.recv(1) == b""
    browser.close()
    browser, program = behind.joined()
    browser.close()
    assert program.recv(1) == b""
    program.close()
    until(lambda: behind.door.connections == 0, 5, lambda: behind.door.connections)


def test_a_client_that_has_said_all_may_still_read(behind: Behind) -> None:
    browser, program = behind.joined()
    browser.sendall(b"body")
    browser.shutdown(socket.SHUT_WR)
    assert program.recv(10) == b"body"
    assert program.recv(10) == b""
    program.sendall(b"answer")
    program.close()
    assert read_all(browser) == b"answer"
    browser.close()


def test_an_early_answer_arrives_though_the_client_still_sends(behind: Behind) -> None:
    """A close with bytes unread would take the answer back."""
    browser, program = behind.joined()
    browser.sendall(b"x" * 1_000_000)
    program.sendall(b"too large")
    program.close()
    assert read_all(browser) == b"too large"
    browser.close()


def test_a_program_that_is_gone_is_503(behind: Behind) -> None:
    Path(behind.place).unlink()
    with socket.create_connection(behind.listener.getsockname(), timeout=20) as browser:
        browser.sendall(b"GET / HTTP/1.1\r\nX-Sluice-Key: key\r\n\r\n")
        assert _status(read_all(browser)) == 503


def test_a_head_that_does_not_come_is_408(behind: Behind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sluice_train.app.door.HEAD_SECONDS", 0.2)
    with socket.create_connection(behind.listener.getsockname(), timeout=20) as browser:
        browser.sendall(b"GET / HTTP/1.1\r\n")
        assert _status(read_all(browser)) == 408


@given(st.binary(max_size=300))
def test_no_bytes_break_the_reader_of_heads(raw: bytes) -> None:
    with suppress(head.BadHead):
        found = head.parse(raw)
        again = head.parse(found.passed_on(found.target)[:-4])
        assert (again.method, again.target) == (found.method, found.target)
        assert again.keys == []
