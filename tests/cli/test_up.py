"""Processes are started here: that they are, and end, is what is promised."""

import http.client
import json
import os
import pwd
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import click
import pytest

from gateway.cli import account, children
from gateway.cli.children import Recipe, supervise
from gateway.cli.up import _environment, _web_argv
from gateway.config import load_settings
from gateway.store.schema import upgrade
from gateway.store.uow import make_engine


def recipe(name: str, code: str, **values: object) -> Recipe:
    argv = [sys.executable, "-c", code]
    return Recipe(name, lambda: argv, dict(os.environ), **values)  # type: ignore[arg-type]


class Supervised:
    """`supervise` in a thread, with what it said."""

    def __init__(self, *recipes: Recipe) -> None:
        self.said: list[str] = []
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._run, args=[recipes])

    def _run(self, recipes: Sequence[Recipe]) -> None:
        supervise(recipes, stop=self.stop, say=self.said.append, stop_seconds=3)

    def __enter__(self) -> "Supervised":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        self.thread.join(timeout=20)
        assert not self.thread.is_alive()


def wait_for(what: Callable[[], bool], seconds: float = 15) -> None:
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


SLEEPER = "import os, time; open({path!r}, 'a').write(f'{{os.getpid()}}\\n'); time.sleep(60)"


def test_a_child_that_dies_is_started_again_and_all_end_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(children, "FIRST_PAUSE", 0.01)
    file = tmp_path / "pids"
    file.touch()

    def pids() -> list[int]:
        return [int(line) for line in file.read_text().splitlines()]

    with Supervised(recipe("web", SLEEPER.format(path=str(file)))) as running:
        wait_for(lambda: len(pids()) == 1)
        os.kill(pids()[0], signal.SIGKILL)
        wait_for(lambda: len(pids()) == 2)

    assert not any(alive(pid) for pid in pids())
    assert running.said == ["web ended (signal 9); starting it again in 0.01 s"]


def test_the_pauses_grow_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(children, "LONGEST_PAUSE", 0.03)
    monkeypatch.setattr(children, "LOOK_SECONDS", 0.01)
    with Supervised(recipe("worker", "raise SystemExit(3)")) as running:
        wait_for(lambda: len(running.said) >= 4)

    pauses = [line.rpartition(" in ")[2] for line in running.said[:4]]
    assert pauses == ["0.01 s", "0.02 s", "0.03 s", "0.03 s"]


def test_one_that_cannot_start_yet_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "FIRST_PAUSE", 0.01)
    broken = Recipe("broker", lambda: ["/no/such/program"], {})
    with Supervised(broken) as running:
        wait_for(lambda: len(running.said) >= 2)

    assert "cannot start" in running.said[0]


def test_one_that_does_not_listen_is_killed_with_its_own_children(tmp_path: Path) -> None:
    file = tmp_path / "ready"
    deaf = "import signal, time; signal.signal(15, signal.SIG_IGN)"
    deaf += f"; open({str(file)!r}, 'w'); time.sleep(60)"

    with Supervised(recipe("web", deaf)):
        wait_for(file.exists)


def test_what_children_make_is_private(tmp_path: Path) -> None:
    file = tmp_path / "made"
    with Supervised(recipe("web", f"open({str(file)!r}, 'w'); import time; time.sleep(60)")):
        wait_for(file.exists)

    assert file.stat().st_mode & 0o077 == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_web_and_worker_run_as_the_other_account() -> None:
    """In a folder beside pytest's own, which keeps others out."""
    nobody = account.unprivileged("nobody")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        file = Path(folder) / "who"
        script = 'id -u > "$0.new"; id -G >> "$0.new"; mv "$0.new" "$0"; exec sleep 60'
        argv = ["/bin/sh", "-c", script, str(file)]
        with Supervised(Recipe("web", lambda: argv, {"PATH": "/usr/bin:/bin"}, nobody)):
            wait_for(file.exists)

        assert file.read_text().split() == [str(nobody.uid), str(nobody.gid)]


def test_root_is_no_account_for_the_web() -> None:
    with pytest.raises(click.ClickException, match="another account"):
        account.unprivileged("root")
    with pytest.raises(click.ClickException, match="no account"):
        account.unprivileged("no-such-account")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_root_gives_away_the_files_of_the_home_and_nothing_behind_a_link(home: Path) -> None:
    outside = home.parent / "outside"
    outside.write_text("not theirs")
    (home / "logs").mkdir(parents=True)
    (home / "run").mkdir()
    (home / "sluice.db").touch()
    (home / "secret_key").symlink_to(outside)
    os.link(outside, home / "sluice.db-wal")
    nobody = account.unprivileged("nobody")

    account.give_home(load_settings(), nobody)

    assert (home / "sluice.db").stat().st_uid == nobody.uid
    assert (home / "logs").stat().st_uid == nobody.uid
    assert (home / "run").stat().st_uid == 0
    assert outside.stat().st_uid == 0


def test_the_web_process_waits_longer_than_the_broker_may_take(home: Path) -> None:
    settings = load_settings()
    argv = _web_argv(settings)

    assert int(argv[argv.index("--timeout") + 1]) > settings.broker_timeout_seconds
    assert _environment(settings)["SLUICE_HOME"] == str(home)


def test_what_the_web_process_writes_is_json_without_a_password(home: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    home.mkdir(exist_ok=True)
    engine = make_engine(load_settings().database_url)
    upgrade(engine)
    engine.dispose()
    argv = _web_argv(replace(load_settings(), listen=address))
    # A stranger's sign-in, and one that breaks in the middle: here by a table that is gone.
    with subprocess.Popen(argv, env=_environment(load_settings()), stderr=subprocess.PIPE) as web:
        try:
            wait_for(lambda: _status(address, "") == 400)
            assert _status(address, '{"login": "x", "password": "hunter2hunter2"}') == 422
            with closing(sqlite3.connect(home / "sluice.db")) as database:
                database.execute("drop table sign_in_failure")
                database.commit()
            assert _status(address, '{"login": "x", "password": "hunter2hunter2"}') == 500
        finally:
            web.terminate()
            _, errors = web.communicate(timeout=20)
    events = [json.loads(line)["event"] for line in errors.decode().splitlines()]
    assert {"sign_in_refused", "bug"} <= set(events)
    assert b"hunter2" not in errors


def test_idle_connections_keep_nobody_waiting(home: Path) -> None:
    """Browsers open connections ahead of need: more of them than the web has threads."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        host, port = probe.getsockname()
    home.mkdir(exist_ok=True)
    engine = make_engine(load_settings().database_url)
    upgrade(engine)
    engine.dispose()
    argv = _web_argv(replace(load_settings(), listen=f"{host}:{port}"))
    with subprocess.Popen(argv, env=_environment(load_settings())) as web, ExitStack() as idle:
        try:
            wait_for(lambda: _status(f"{host}:{port}", "") == 400)
            for _ in range(16):
                idle.enter_context(socket.create_connection((host, port)))
            began = time.monotonic()
            assert _status(f"{host}:{port}", "") == 400
            assert time.monotonic() - began < 3
        finally:
            web.terminate()


def _status(address: str, body: str) -> int:
    """Of a sign-in; 0 when nobody listens yet."""
    connection = http.client.HTTPConnection(address, timeout=20)
    try:
        connection.request("POST", "/api/v1/sessions", body, {"Content-Type": "application/json"})
        return connection.getresponse().status
    except ConnectionRefusedError:
        return 0
    finally:
        connection.close()


def test_our_own_account_has_a_name() -> None:
    assert account.own().name == pwd.getpwuid(os.geteuid()).pw_name
