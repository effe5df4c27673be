"""What the WSGI side lets in. A real Unix socket each time: the kernel names the caller."""

import json
import os
import socket
import time
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from gateway.brokerclient.client import SocketBroker
from gateway.errors import BrokerRefused, BrokerSilent, BrokerUnreachable
from gateway.testing.contracts import Cast, request
from gateway.testing.devbroker import application_of
from gateway.testing.fakebroker import FakeBroker
from gateway.testing.serving import served
from gateway.wire import messages as m
from gateway.wire.codec import dump
from gateway.wire.guard import inside_transaction


@pytest.fixture
def fake():
    return FakeBroker()


@pytest.fixture
def app(fake, tmp_path):
    return application_of(fake, tmp_path)


def call(app, tmp_path, raw):
    """Send bytes as they are; status and body of the answer."""
    with served(app, tmp_path / "b.sock") as path, socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(10)
        sock.connect(str(path))
        sock.sendall(raw)
        answer = b""
        while part := sock.recv(65536):
            answer += part
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


def post(name, body, *, length=None, headers=b""):
    size = len(body) if length is None else length
    head = f"POST /v1/{name} HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n".encode()
    return head + headers + b"\r\n" + body


def test_an_unknown_verb_is_refused(app, tmp_path):
    status, body = call(app, tmp_path, post("run", b"{}"))
    assert (status, body["code"]) == (404, "unknown_verb")


@pytest.mark.parametrize("path", ["/", "/v1", "/v1/", "/v2/queue", "/queue", "/v1/queue/x"])
def test_only_the_verbs_have_an_address(app, tmp_path, path):
    raw = f"POST {path} HTTP/1.1\r\nContent-Length: 2\r\n\r\n{{}}".encode()
    assert call(app, tmp_path, raw)[0] == 404


def test_only_post_is_understood(app, tmp_path):
    status, body = call(app, tmp_path, b"GET /v1/queue HTTP/1.1\r\n\r\n")
    assert (status, body["code"]) == (405, "post_only")


@pytest.mark.parametrize("extra", [{"environment": {"A": "b"}}, {"user_id": 0}, {"gpus": 1}])
def test_an_unknown_field_is_refused_and_nothing_is_submitted(app, fake, tmp_path, extra):
    body = json.dumps({**dump(request(Cast())), **extra}).encode()
    status, answer = call(app, tmp_path, post("submit", body))
    assert (status, answer["code"]) == (400, "bad_message")
    assert not fake.jobs


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b'{"a": ', b"\xff", b"[" * 100_000])
def test_what_is_no_message_is_refused(app, tmp_path, body):
    status, answer = call(app, tmp_path, post("queue", body))
    assert (status, answer["code"]) == (400, "bad_message")


def test_a_body_that_is_too_large_is_refused_before_it_is_read(app, tmp_path):
    small = replace(app, max_body_bytes=1000)
    # Nothing of the body is sent at all: an answer proves that nobody waited for it.
    status, answer = call(small, tmp_path, post("queue", b"", length=10**12))
    assert (status, answer["code"]) == (413, "too_large_body")


@pytest.mark.parametrize("headers", [b"", b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n"])
def test_a_body_without_a_length_is_refused(app, tmp_path, headers):
    raw = b"POST /v1/queue HTTP/1.1\r\n" + headers + b"\r\n{}"
    status, answer = call(app, tmp_path, raw)
    assert (status, answer["code"]) == (411, "length_required")


def test_a_caller_with_the_wrong_uid_learns_nothing(app, fake, tmp_path):
    strict = replace(app, allowed_uids=frozenset({4_000_000}))
    for raw in (post("queue", b"{}"), post("nosuch", b"x"), b"GET / HTTP/1.1\r\n\r\n"):
        status, answer = call(strict, tmp_path, raw)
        assert (status, answer["code"]) == (403, "caller_refused")
    assert not fake.calls


def test_each_act_is_in_the_log_before_and_after(app, fake, tmp_path):
    asked = request(Cast(), script="#!/bin/sh\necho hunter2\n")
    with served(app, tmp_path / "b.sock") as path:
        broker = SocketBroker(path, 10)
        job = broker.submit(asked)
        broker.cancel(job.job_id, user=asked.user)
        with pytest.raises(BrokerRefused):
            broker.cancel(job.job_id, user=asked.user)
        broker.queue()
    text = (tmp_path / "acts.log").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    assert [(line["event"], line["verb"], line.get("outcome")) for line in lines] == [
        ("begin", "submit", None),
        ("end", "submit", "ok"),
        ("begin", "cancel", None),
        ("end", "cancel", "ok"),
        ("begin", "cancel", None),
        ("end", "cancel", "already_done"),
    ]
    assert lines[0]["token"] == asked.token
    assert lines[1]["job_id"] == job.job_id
    assert "hunter2" not in text


@pytest.mark.parametrize("make", [Path.mkdir, lambda path: path.symlink_to("/dev/full")])
def test_a_log_that_cannot_be_written_stops_the_act(app, fake, tmp_path, make):
    """Nothing happened, and that is what is said: nobody need look for a job."""
    make(tmp_path / "acts.log")
    with served(app, tmp_path / "b.sock") as path, pytest.raises(BrokerUnreachable):
        SocketBroker(path, 10).submit(request(Cast()))
    assert not fake.jobs


def test_a_disk_that_fills_up_after_the_act_changes_no_answer(app, fake, tmp_path):
    def then_full(asked):
        (tmp_path / "acts.log").unlink()
        (tmp_path / "acts.log").symlink_to("/dev/full")
        return app.handlers["submit"](asked)

    odd = replace(app, handlers={**app.handlers, "submit": then_full})
    with served(odd, tmp_path / "b.sock") as path:
        assert SocketBroker(path, 10).submit(request(Cast())).job_id in fake.jobs
        (tmp_path / "acts.log").unlink()
        fake.refuse_next("invalid_qos")
        with pytest.raises(BrokerRefused) as caught:
            SocketBroker(path, 10).submit(request(Cast()))
    assert caught.value.code == "invalid_qos"


def test_an_error_nobody_foresaw_is_never_a_no(app, fake, tmp_path, caplog):
    def broken(_):
        raise ZeroDivisionError

    odd = replace(app, handlers={**app.handlers, "submit": broken, "queue": broken})
    with served(odd, tmp_path / "b.sock") as path:
        broker = SocketBroker(path, 10)
        with pytest.raises(BrokerSilent):
            broker.submit(request(Cast()))
        with pytest.raises(BrokerSilent):
            broker.queue()


def test_faults_of_slurm_keep_their_meaning_over_the_wire(app, fake, tmp_path):
    with served(app, tmp_path / "b.sock") as path:
        broker = SocketBroker(path, 10)
        fake.unreachable = True
        with pytest.raises(BrokerUnreachable):
            broker.queue()
        fake.unreachable = False
        fake.silent_after_next()
        asked = request(Cast())
        with pytest.raises(BrokerSilent):
            broker.submit(asked)
        found = broker.find(asked.token, user=asked.user, since=fake.now)
        assert found is not None


def test_no_socket_means_that_nothing_happened(tmp_path):
    with pytest.raises(BrokerUnreachable):
        SocketBroker(tmp_path / "none.sock", 1).queue()


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\n\r\n{", b"nonsense\r\n\r\n"])
def test_an_answer_that_breaks_off_leaves_it_unknown(tmp_path, answer):
    path = tmp_path / "s.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        # The kernel queues the connection; the answer is written before the client reads it.
        import threading

        def once():
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer)

        thread = threading.Thread(target=once)
        thread.start()
        with pytest.raises(BrokerSilent):
            SocketBroker(path, 5).cancel(1, user="nlp-1")
        thread.join()


def test_silence_is_unknown(tmp_path):
    path = tmp_path / "s.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        with pytest.raises(BrokerSilent):
            SocketBroker(path, 0.05).cancel(1, user="nlp-1")


def test_a_call_inside_a_transaction_is_a_programming_error(tmp_path):
    reset = inside_transaction.set(True)
    try:
        with pytest.raises(RuntimeError, match="transaction"):
            SocketBroker(tmp_path / "none.sock", 1).queue()
    finally:
        inside_transaction.reset(reset)


def test_every_verb_has_a_handler():
    from gateway.broker.service import Service
    from gateway.testing.serving import handlers_of
    from gateway.wire.verbs import VERBS

    service = Service(*(Mock() for _ in Service.__slots__))
    assert set(service.handlers()) == set(VERBS)
    assert set(handlers_of(FakeBroker())) == set(VERBS)
    assert m.Nothing() == m.Nothing()


@pytest.mark.parametrize(
    ("kind", "stuck", "goes_on"),
    [
        (
            "slots",
            lambda broker: broker.queue(),
            lambda broker: broker.check_folder("~", user="nlp-1"),
        ),
        (
            "file_slots",
            lambda broker: broker.read_file("/home/nlp-1/x", user="nlp-1", offset=0, max_bytes=9),
            lambda broker: broker.queue(),
        ),
    ],
)
def test_what_hangs_keeps_a_worker_for_everything_else(app, tmp_path, kind, stuck, goes_on):
    slots = getattr(app, kind)
    with served(app, tmp_path / "b.sock") as path, slots.taken():
        folder = tmp_path / kind.replace("_", "-")
        os.utime(folder / "slot-0", (time.time() - 5, time.time() - 5))
        broker = SocketBroker(path, 10)
        with pytest.raises(BrokerUnreachable):
            stuck(broker)
        goes_on(broker)


def test_limits_are_logged_with_what_was_asked(tmp_path):
    with served(application_of(FakeBroker(), tmp_path), tmp_path / "broker.sock") as path:
        broker = SocketBroker(path, 5)
        broker.set_group_limits(m.SetGroupLimits("nlp", None, 0, None))
    begin, end = [json.loads(line) for line in (tmp_path / "acts.log").read_text().splitlines()]
    assert (begin["verb"], begin["account"], begin["user"]) == ("set-group-limits", "nlp", "")
    assert begin["limits"] == "GrpSubmitJobs=0 GPU-run-minutes=None"
    assert end["outcome"] == "ok"
