"""`sluice qos` over the real broker: what is exported changes nothing, and a file is what Slurm has
afterwards."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from gateway.cli import main
from gateway.services import policy_drift, poll
from gateway.store.uow import make_begin, make_engine

pytestmark = pytest.mark.slurm

FILE = """
[qos.night]
description = "nights; and more"
priority = 7
usage_factor = "0.5"
limit_factor = "1.25"
flags = ["DenyOnLimit", "NoReserve"]
grp_tres = {cpu = 64, mem = 65536, "gres/gpu:a100" = 8}
max_tres_minutes_per_job = {"gres/gpu" = 600}
max_wall = "2-12:30:00"
grace = "0-00:01:30"
"""


def told(*words: str, code: int = 0):
    done = CliRunner().invoke(main, ("qos", *words, "--json"))
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)


@pytest.fixture
def polled(tmp_path, monkeypatch, broker):
    """A database that has seen this Slurm once."""
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path))
    monkeypatch.setenv("SLUICE_BROKER_SOCKET", str(broker.socket_path))
    assert CliRunner().invoke(main, ("db", "upgrade")).exit_code == 0
    engine = make_engine(f"sqlite:///{tmp_path / 'sluice.db'}")
    begin, now = make_begin(engine), datetime.now(UTC)
    assert poll.poll_policy(begin=begin, broker=broker, now=now).error_code is None
    policy_drift.look(begin=begin, read=begin, now=now)
    yield
    engine.dispose()


def test_policy_lives_in_a_file(polled, sacctmgr, tidy, tmp_path: Path):
    exported = tmp_path / "all.toml"
    assert CliRunner().invoke(main, ("qos", "export", "--groups", "-o", str(exported))).output == ""
    assert "[groups.biolab]" in exported.read_text()
    assert told("diff", str(exported)) == []
    ours = tmp_path / "ours.toml"
    ours.write_text(FILE)
    assert told("apply", str(ours), "--yes")["state"] == "applied"
    columns = ("Priority", "UsageFactor", "MaxWall", "GraceTime", "GrpTRES")
    limits = "cpu=64,gres/gpu:a100=8,mem=64G"
    assert sacctmgr.shown("night", *columns) == ["7", "0.500000", "2-12:30:00", "00:01:30", limits]
    assert told("diff", str(ours)) == []
    ours.write_text(FILE.replace("cpu = 64, ", ""))  # one resource of three goes
    assert told("apply", str(ours), "--yes")["state"] == "applied"
    assert sacctmgr.shown("night", "GrpTRES") == ["gres/gpu:a100=8,mem=64G"]
    assert told("undo", "night", "1", "--yes")["state"] == "applied"
    assert sacctmgr.shown("night", "GrpTRES") == [limits]
    sacctmgr("modify", "qos", "where", "name=night", "set", "Priority=9")
    assert told("apply", str(ours), "--yes", code=1)["state"] == "refused"
    assert sacctmgr.shown("night", "Priority") == ["9"]
