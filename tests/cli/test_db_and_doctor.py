import socket
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from gateway.cli.db import db
from gateway.cli.doctor import doctor
from gateway.cli.user import user
from gateway.store import models as t
from gateway.store.uow import make_begin, make_engine
from gateway.testing.builders import add_person


def out(command: str) -> tuple[int, str]:
    done = CliRunner().invoke(
        {"doctor": doctor}.get(command, db), [command] if command != "doctor" else []
    )
    return done.exit_code, done.output


def test_check_says_what_to_run_and_makes_no_file(home: Path) -> None:
    code, said = out("check")

    assert code == 1
    assert "sluice db upgrade" in said
    assert not home.exists()


def test_upgrade_makes_a_database_that_only_its_owner_reads(home: Path) -> None:
    assert out("upgrade")[0] == 0
    assert out("upgrade")[0] == 0
    assert out("check")[0] == 0
    assert (home / "sluice.db").stat().st_mode & 0o077 == 0


def test_wrong_settings_are_one_message(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_POLL_SECONDS", "soon")
    monkeypatch.setenv("SLUICE_TIMEZONE", "Atlantis")

    code, said = out("check")

    assert code == 1
    assert "poll_seconds" in said
    assert "timezone" in said


def test_people_need_a_database_first(home: Path) -> None:
    done = CliRunner().invoke(user, ["list"])

    assert (done.exit_code, "sluice db upgrade" in done.output) == (1, True)


def test_the_doctor_names_a_fix_for_each_thing_that_is_wrong(home: Path) -> None:
    out("upgrade")

    code, said = out("doctor")

    assert code == 1
    for fix in ("sluice user add", "start the worker", "sluice up"):
        assert fix in said or "start it" in said
    assert said.count("WRONG") == said.count("fix:")


def test_the_doctor_says_so_when_all_is_well(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out("upgrade")
    engine = make_engine(f"sqlite:///{home / 'sluice.db'}")
    begin = make_begin(engine)
    add_person(begin, "admin", role="administrator")
    with begin() as session:
        at = datetime.now(UTC) - timedelta(seconds=9)
        session.add(t.Poll(name="queue", tried_at=at, succeeded_at=at, interval_seconds=15))
    engine.dispose()
    with socket.socket(socket.AF_UNIX) as broker:
        # A Unix address is short, and a test's folder is not.
        monkeypatch.chdir(home / "run")
        broker.bind("broker.sock")
        broker.listen()
        monkeypatch.setenv("SLUICE_BROKER_SOCKET", "broker.sock")
        code, said = out("doctor")

    assert "1 environment\n" in said
    assert "WRONG" not in said
    assert code == 0


def test_the_doctor_sees_an_old_poll_and_an_open_key(home: Path) -> None:
    out("upgrade")
    (home / "secret_key").write_text("x")
    (home / "secret_key").chmod(0o644)
    engine = make_engine(f"sqlite:///{home / 'sluice.db'}")
    with make_begin(engine)() as session:
        at = datetime.now(UTC) - timedelta(hours=1)
        session.add(t.Poll(name="queue", tried_at=at, succeeded_at=at, error_code="slurm_down"))
    engine.dispose()

    said = out("doctor")[1]

    assert "chmod 600" in said
    assert "slurm_down" in said


def test_two_upgrades_at_once_make_one_database(home: Path) -> None:
    """Processes, as two services that start together are."""
    argv = [sys.executable, "-c", "from gateway.cli import main; main()", "db", "upgrade"]
    both = [subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=60)[0] for process in both]

    assert said == ["The database is ready.\n"] * 2
    assert out("check")[0] == 0
