"""The real pre-fork server on a real socket. Each test starts one, half a second, because what it
promises (kill timeout, peer credentials, a stale socket) is gunicorn's and the kernel's."""

import contextlib
import json
import os
import socket
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from gateway.brokerclient.client import SocketBroker
from gateway.errors import BrokerRefused, BrokerSilent, BrokerUnreachable
from gateway.testing.contracts import Cast, request

PROGRAM = """
import os, sys, time
from dataclasses import replace
from pathlib import Path
from gateway.broker import log
from gateway.broker.main import Server
from gateway.config import BrokerSettings
from gateway.testing.devbroker import application_of
from gateway.testing.fakebroker import FakeBroker

folder, uid = Path(sys.argv[1]), int(sys.argv[2])
log.configure()
app = application_of(FakeBroker(), folder)
app = replace(app, allowed_uids=frozenset({uid}), max_body_bytes=100_000, handlers={
    **app.handlers, "nodes": lambda _: time.sleep(60), "qos": lambda _: os._exit(1)})
Server(app, BrokerSettings(
    socket=folder / "b.sock", acts_log=folder / "acts.log", allowed_uids=frozenset({uid}),
    min_uid=1000, kill_timeout_seconds=1, workers=2, max_body_bytes=100_000, file_areas=(),
    cluster_name="c", volumes=None), tidy=(folder / "tidied").touch).run()
"""


@contextlib.contextmanager
def server(folder, uid=None):
    uid = os.getuid() if uid is None else uid
    argv = [sys.executable, "-c", PROGRAM, str(folder), str(uid)]
    environ = {**os.environ, "HOME": str(folder / "home")}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(argv, stdout=log, stderr=log, env=environ)
    broker = SocketBroker(folder / "b.sock", 20)
    try:
        end = time.monotonic() + 20
        while not answers(broker):
            assert process.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < end
            time.sleep(0.02)
        yield broker
    finally:
        process.terminate()
        process.wait(15)


def answers(broker):
    try:
        broker.partitions()
    except BrokerRefused:
        return True
    except (BrokerUnreachable, BrokerSilent):
        return False
    return True


def test_a_stale_socket_is_replaced_and_anyone_may_knock(tmp_path):
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(tmp_path / "b.sock"))
    with server(tmp_path) as broker:
        assert broker.associations()
        assert stat.S_IMODE((tmp_path / "b.sock").stat().st_mode) == 0o666


def test_a_caller_with_another_uid_is_refused(tmp_path):
    with server(tmp_path, uid=4_000_000) as broker, pytest.raises(BrokerRefused) as caught:
        broker.queue()
    assert caught.value.code == "caller_refused"


def test_silent_strangers_hold_up_nobody(tmp_path):
    """As many as there are workers, and one more: each is turned away before it says a word."""
    with server(tmp_path, uid=4_000_000) as broker, contextlib.ExitStack() as stack:
        for _ in range(3):
            knock = stack.enter_context(socket.socket(socket.AF_UNIX))
            knock.connect(str(broker.socket_path))
        began = time.monotonic()
        with pytest.raises(BrokerRefused) as caught:
            broker.queue()
        assert caught.value.code == "caller_refused"
        assert time.monotonic() - began < 0.5
        knock.settimeout(2)
        assert b" 403 " in knock.recv(1000)


def test_nobody_steers_it_by_another_socket(tmp_path):
    with server(tmp_path):
        time.sleep(0.3)  # gunicorn opens it after the first workers
        assert not (tmp_path / "home").exists()


def test_an_oversized_body_is_refused(tmp_path):
    with server(tmp_path) as broker, pytest.raises(BrokerRefused) as caught:
        broker.submit(request(Cast(), script="#!/bin/sh\n" + "#" * 200_000))
    assert caught.value.code == "too_large_body"


def test_a_hung_request_is_ended_and_holds_up_nobody(tmp_path):
    with server(tmp_path) as broker, ThreadPoolExecutor(1) as pool:
        began = time.monotonic()
        hung = pool.submit(broker.nodes)
        time.sleep(0.2)
        assert broker.check_folder("/home/nlp-1", user="nlp-1").writable
        assert time.monotonic() - began < 1
        assert isinstance(hung.exception(timeout=15), BrokerSilent)
        assert broker.associations()


def test_a_worker_that_dies_is_replaced(tmp_path):
    with server(tmp_path) as broker:
        assert not (tmp_path / "tidied").exists()
        with pytest.raises(BrokerSilent):
            broker.qos()
        assert broker.associations()
        end = time.monotonic() + 5
        while not (tmp_path / "tidied").exists():
            assert time.monotonic() < end
            time.sleep(0.02)


def test_what_it_writes_is_json_also_when_a_worker_is_ended(tmp_path):
    with server(tmp_path) as broker, pytest.raises(BrokerSilent):
        broker.nodes()
    lines = (tmp_path / "log").read_text().splitlines()
    assert any("TIMEOUT" in json.loads(line)["event"] for line in lines)
