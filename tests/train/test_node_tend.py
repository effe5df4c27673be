"""The guard beside real programs that hang, each in its way, with the real telemetry.

Real processes and real seconds, few of them: that they are seen from outside is what is tested.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from node_runs import until
from nvml_machine import Node, busy

from sluice_train import checkpoint
from sluice_train.files import RunFolder, lines
from sluice_train.node.halting import Halt
from sluice_train.node.stall import Stall
from sluice_train.node.tend import act

HZ = os.sysconf("SC_CLK_TCK")

# As the epilogue has it: the sidecars are children of the batch script, and so is the program.
BATCH = """
trap 'echo USR2 >>"$SLUICE_RUN_DIR/got"' USR2
trap 'kill $(jobs -p); exit 0' TERM
"$PYTHON" -m sluice_train.node watch &
WATCH=$!
"$PYTHON" -m sluice_train.node tend &
TEND=$!
echo "$TEND $WATCH" >"$SLUICE_RUN_DIR/sidecars"
for LOCAL_RANK in 0 1; do
  export LOCAL_RANK
  "$PYTHON" program.py &
  echo "$!" >"$SLUICE_RUN_DIR/rank$LOCAL_RANK"
done
unset LOCAL_RANK
while :; do wait; done
"""
RANKS_THAT_WAIT = "import time; time.sleep(600)"
FIRST_STEPS = """
import os, sys, time
from sluice_train.files import RunFolder
run, first = RunFolder.of_environment(), os.environ["LOCAL_RANK"] == "0"
def report(step):
    if first:
        run.line(run.metrics, {"step": step, "loss": 1.0})
for step in range(5):
    report(step)
    time.sleep(0.1)
"""
PRINTS_FOR_EVER = FIRST_STEPS + 'while True: print("alive", flush=True); time.sleep(0.1)'
COUNTS_NO_MORE = FIRST_STEPS + "while True: report(4); time.sleep(0.1)"
GETS_ON = FIRST_STEPS + "while True: step += 1; report(step); time.sleep(0.1)"


class Job:
    """A batch script with its two ranks on a node."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.folder = RunFolder.of_environment(node.environment)
        self.folder.path.mkdir()
        self.log = node.folder / "job.out"
        self.batch: subprocess.Popen[bytes] | None = None

    def starts(self, program: str, **variables: str) -> None:
        (self.node.folder / "program.py").write_text(program)
        environment = {
            **self.node.environment,
            "PYTHON": sys.executable,
            "SLUICE_LOG": str(self.log),
            "SLUICE_WATCH_SECONDS": "0.2",
            "SLUICE_GUARD_SECONDS": "0.2",
            "NPROC_PER_NODE": "2",
            # Only the sign that is tested is quick.
            **{
                f"SLUICE_STALL_{sign}_SECONDS": "600" for sign in ("RANKS", "STEPS", "LOG", "CARDS")
            },
            **variables,
        }
        with self.log.open("ab") as log:
            self.batch = subprocess.Popen(
                ["bash", "-c", BATCH], env=environment, cwd=self.node.folder, stdout=log, stderr=log
            )
        until((self.folder.path / "rank1").is_file)

    def pid(self, name: str, word: int = 0) -> int:
        return int((self.folder.path / name).read_text().split()[word])

    def tends(self) -> bool:
        """The guard has begun: by its niceness."""
        return words_of(self.pid("sidecars"))[16] == "10"

    def has_looked(self) -> None:
        """Wait until the guard has seen what is there now: every 0.2 s, and it tells nobody."""
        until(self.tends)
        time.sleep(2)

    def told(self, kind: str) -> list[dict[str, Any]]:
        return [line for line in lines(self.folder.events) if line["kind"] == kind]

    def telemetry(self) -> list[dict[str, Any]]:
        return list(lines(self.folder.telemetry("a100-1")))

    def end(self) -> None:
        if self.batch is not None:
            self.batch.terminate()
            self.batch.wait(timeout=10)


@pytest.fixture
def job(node: Node) -> Iterator[Job]:
    made = Job(node)
    yield made
    made.end()


def test_a_killed_rank_is_seen_said_and_acted_on(job: Job) -> None:
    job.starts(RANKS_THAT_WAIT, SLUICE_STALL_RANKS_SECONDS="0.5", SLUICE_ON_STALL="requeue")
    until(lambda: any(line.get("procs") == 2 for line in job.telemetry()))
    job.has_looked()
    os.kill(job.pid("rank1"), signal.SIGKILL)
    until((job.folder.path / "got").is_file)
    assert json.loads(job.folder.stalled.read_text()) == {"signs": ["ranks"], "rule": "requeue"}
    assert job.folder.stop.read_text() == "stall\n"
    [stall] = job.told("stall")
    assert (stall["signs"], stall["rule"]) == (["ranks"], "requeue")
    assert stall["text"].startswith("1 of 2 ranks are alive")
    assert job.told("stacks")
    assert "1 of 2 ranks are alive" in job.log.read_text()


@pytest.mark.parametrize("program", [PRINTS_FOR_EVER, COUNTS_NO_MORE])
def test_steps_that_stop_are_seen_whatever_else_goes_on(job: Job, program: str) -> None:
    job.starts(program, SLUICE_STALL_STEPS_SECONDS="2", SLUICE_ON_STALL="hold")
    until((job.folder.path / "got").is_file)
    assert job.told("stall")[0]["signs"] == ["steps"]
    assert json.loads(job.folder.stalled.read_text())["rule"] == "hold"


def test_a_script_that_sleeps_for_ever_is_seen_by_its_log_and_its_idle_cards(job: Job) -> None:
    job.node.has(busy(0, util=0))
    job.starts(
        RANKS_THAT_WAIT,
        CUDA_VISIBLE_DEVICES="0",
        SLUICE_STALL_LOG_SECONDS="1.5",
        SLUICE_ON_STALL="hold",
    )
    until((job.folder.path / "got").is_file)
    assert job.told("stall")[0]["signs"] == ["log"]


def test_cards_that_were_busy_and_are_idle_now_are_seen(job: Job) -> None:
    job.node.has(busy(0, util=80))
    variables = {"CUDA_VISIBLE_DEVICES": "0", "SLUICE_STALL_CARDS_SECONDS": "1"}
    job.starts(RANKS_THAT_WAIT, **variables, SLUICE_ON_STALL="hold")
    until(lambda: job.telemetry() and job.telemetry()[-1]["cards"])
    job.has_looked()
    os.kill(job.pid("sidecars", 1), signal.SIGTERM)
    job.node.has(busy(0, util=0))
    watch = job.node.start("watch", **variables, SLUICE_WATCH_SECONDS="0.2", NPROC_PER_NODE="2")
    try:
        until((job.folder.path / "got").is_file)
    finally:
        watch.kill()
        watch.communicate()
    assert job.told("stall")[0]["signs"] == ["cards"]


def test_by_the_rule_nothing_a_stall_is_told_once_and_nobody_is_disturbed(job: Job) -> None:
    job.starts(COUNTS_NO_MORE, SLUICE_STALL_STEPS_SECONDS="2", SLUICE_ON_STALL="nothing")
    until(lambda: job.told("stall"))
    time.sleep(3)
    assert len(job.told("stall")) == 1
    assert not (job.folder.path / "got").exists()
    assert not job.folder.stop.exists()
    assert not job.folder.stalled.exists()


def test_a_run_that_gets_on_is_left_alone_and_so_is_one_that_is_to_stop(job: Job) -> None:
    limits = {"SLUICE_STALL_STEPS_SECONDS": "4", "SLUICE_STALL_RANKS_SECONDS": "4"}
    job.starts(GETS_ON, **limits, SLUICE_ON_STALL="hold")
    until(lambda: len(list(lines(job.folder.metrics))) > 50)
    job.folder.stop.write_text("USR1\n")
    os.kill(job.pid("rank0"), signal.SIGKILL)
    time.sleep(6)
    assert not job.told("stall")
    assert not (job.folder.path / "got").exists()


def test_a_run_that_is_stopped_while_its_stacks_are_taken_is_not_disturbed(job: Job) -> None:
    run, stall = job.folder, Stall(("steps",), "no step")
    run.stop.write_text("USR1\n")
    with subprocess.Popen(["sleep", "60"]) as batch:
        act(run, stall, rule="requeue", parent=batch.pid, halt=Halt())
        batch.terminate()
    assert batch.returncode == -signal.SIGTERM  # not of USR2 before
    assert job.told("stall")
    assert run.stop.read_text() == "USR1\n"
    assert not run.stalled.exists()


def test_a_checkpoint_of_another_count_of_ranks_is_said(job: Job) -> None:
    with checkpoint.writing(job.folder.checkpoints, 10, world=4):
        pass
    path = str(job.folder.checkpoints / "step-000000010")
    job.starts(RANKS_THAT_WAIT, SLUICE_RESUME=path, EXPECT_WORLD="2")
    until(lambda: "the checkpoint is of 4 ranks, this job has 2" in job.log.read_text())


def test_it_ends_when_the_batch_script_is_gone(job: Job) -> None:
    job.starts(RANKS_THAT_WAIT)
    tending, ranks = job.pid("sidecars"), [job.pid("rank0"), job.pid("rank1")]
    assert job.batch is not None
    until(job.tends)
    until(job.telemetry)  # so has the other sidecar
    job.batch.kill()
    try:
        until(lambda: not Path(f"/proc/{tending}").exists())
    finally:
        for rank in ranks:
            os.kill(rank, signal.SIGKILL)


def test_nonsense_in_its_environment_does_not_end_it_before_the_job(job: Job) -> None:
    job.starts(RANKS_THAT_WAIT, SLUICE_STALL_SECONDS="often", SLUICE_UPLOAD="ftp:x")
    until(lambda: "the guard against stalls ended" in job.log.read_text())
    assert "nothing is uploaded" in job.log.read_text()
    tending = job.pid("sidecars")
    assert Path(f"/proc/{tending}").exists()
    os.kill(tending, signal.SIGTERM)
    until(lambda: not Path(f"/proc/{tending}").exists())


def test_a_look_costs_a_thousandth_of_its_ten_seconds_and_the_process_40_mb(
    job: Job, tmp_path: Path
) -> None:
    """Ten times as often as in a job, uploads waited for too."""
    (tmp_path / "second").mkdir()
    variables = {"SLUICE_UPLOAD": str(tmp_path / "second"), "SLUICE_UPLOAD_SECONDS": "1"}
    job.starts(GETS_ON, **variables, SLUICE_GUARD_SECONDS="1")
    tending = job.pid("sidecars")
    until(job.tends)
    time.sleep(1.5)
    begun = processor_seconds(tending)
    time.sleep(5)
    assert processor_seconds(tending) - begun <= 0.05
    status = Path(f"/proc/{tending}/status").read_text()
    peak = int(status.partition("VmHWM:")[2].split()[0])
    assert peak <= 40_000, f"{peak} kB"


def processor_seconds(pid: int) -> float:
    return (int(words_of(pid)[11]) + int(words_of(pid)[12])) / HZ


def words_of(pid: int) -> list[str]:
    """What the kernel tells of a process, from its state on."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
