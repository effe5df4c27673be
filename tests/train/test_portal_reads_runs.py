"""Both ends of the contract: what the library and the batch script write, the portal's worker
reads, to the last event."""

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gateway.services import training
from gateway.services.training_run import TrainingRun, training_run
from gateway.store.uow import Begin, make_begin
from gateway.testing import builders as b
from gateway.testing.database import database
from gateway.testing.fakebroker import FakeBroker
from gateway.testing.training import add_portal_job, run_folder
from sluice_train.files import RunFolder
from sluice_train.ranks import Ranks
from sluice_train.run import Run
from sluice_train.settings import Settings

SHARED = Path(__file__).parents[2] / "sbatch_templates" / "_shared"

USER = "nlp-1"


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    with database(tmp_path) as engine:
        yield make_begin(engine)


def train(folder: Path, key: str, *, upto: int, restart: int = 0, resume: str = "") -> None:
    """A script of a person: steps, metrics, a save at its end."""
    given = {
        "SLUICE_RUN_DIR": str(folder),
        "SLUICE_JOB": key,
        "SLUICE_RESTART": str(restart),
        "SLUICE_RESUME": resume,
        "SLUICE_CHECKPOINT_SECONDS": "0",
        "SLUICE_KIT": "/kit",
    }
    clock = [time.time()]
    run = Run(Settings.of_environment(environment=given), Ranks(), now=lambda: clock[0])
    try:
        for step in run.steps(upto):
            clock[0] += 2
            run.step(step, loss=1 / step, tokens=1000)
        with run.saving(upto) as place:
            (place / "state").write_text("x" * 100)
    finally:
        run._request.leave()


def look(begin: Begin, real: Path, job: int) -> TrainingRun:
    """Copy the real files to where the fake broker has them, and let the worker read."""
    now = datetime.now(UTC) + timedelta(minutes=4)
    broker = FakeBroker(now=now)
    portal = run_folder(begin, broker.files, job)
    for path in real.rglob("*.jsonl"):
        portal.raw(str(path.relative_to(real)), path.read_text())
    report = training.follow(begin=begin, read=begin, broker=broker, now=now, budget_seconds=60.0)
    assert report.error_code is None
    with begin() as session:
        return training_run(session, job, viewer=b.viewer(USER), now=now)


def test_a_run_of_the_library_as_the_portal_sees_it(begin: Begin, tmp_path: Path) -> None:
    start = datetime.now(UTC) - timedelta(minutes=1)
    job = add_portal_job(
        begin, USER, submit_time=start, last_submit_time=start, start_time=start, gpus=1
    )
    real = tmp_path / "run"
    real.mkdir()
    key = run_folder(begin, FakeBroker().files, job).key
    train(real, key, upto=30)
    RunFolder(real, real / "checkpoints", key, 0).line(
        real / "telemetry" / "a100-1.jsonl",
        {"procs": 1, "expected": 1, "cards": [{"i": 0, "uuid": "GPU-0", "util": 50, "mem": 1,
         "mem_total": 2, "power": 3.5, "clock": 4, "ecc": None, "procs": 1}]},
    )  # fmt: skip
    found = look(begin, real, job)
    told = [event.kind for event in found.events]
    assert told[0] == "ready"
    assert {"save_begin", "saved"} <= set(told)
    [checkpoint] = found.checkpoints
    assert (checkpoint.step, checkpoint.local) == (30, True)
    assert checkpoint.bytes
    assert found.step == 30
    assert sum(point.tokens for point in found.points) == 30_000


def test_the_batch_scripts_own_line_is_read(begin: Begin, tmp_path: Path) -> None:
    """`stop_requested` is written by bash: the line of the prologue, run as it stands."""
    prologue = (SHARED / "prologue.sh.j2").read_text()
    first = prologue.index('  printf \'{"at": %s')
    line = prologue[first : prologue.index('events.jsonl"', first) + len('events.jsonl"')]
    start = datetime.now(UTC) - timedelta(minutes=1)
    job = add_portal_job(begin, USER, submit_time=start, start_time=start)
    key = run_folder(begin, FakeBroker().files, job).key
    script = tmp_path / "line.sh"
    script.write_text(f"set -- USR1\n{line}\n")
    exports = {"SLUICE_JOB": key, "SLUICE_RESTART": "0", "SLUICE_RUN_DIR": str(tmp_path)}
    assert os.spawnvpe(os.P_WAIT, "bash", ["bash", str(script)], os.environ | exports) == 0
    [event] = look(begin, tmp_path, job).events
    assert (event.kind, event.facts) == ("stop_requested", {"reason": "USR1"})
