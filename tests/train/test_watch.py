"""The telemetry of a node: real processes, the real pynvml over a library without cards."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from nvml_machine import NVSWITCH, Node, busy, card, cards, uuid

from sluice_train.files import lines
from sluice_train.node.processes import LOOKS, JobProcesses

HZ = os.sysconf("SC_CLK_TCK")
# Whoever may trace us: else a test that is not run by root could not see stacks.
HANGS = """
import ctypes, time
ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(-1), 0, 0, 0)
def all_reduce_that_never_returns():
    print("hanging", flush=True)
    time.sleep(600)
all_reduce_that_never_returns()
"""


class Watched:
    """A node, its watch, and the job's other processes."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.run_folder = Path(node.environment["SLUICE_RUN_DIR"])
        self.path = self.run_folder / "telemetry" / "a100-1.jsonl"
        self.started: list[subprocess.Popen[str]] = []

    def start(self, **variables: str) -> "subprocess.Popen[str]":
        process = self.node.start("watch", **{"SLUICE_WATCH_SECONDS": "0.1", **variables})
        self.started.append(process)
        return process

    def rank(
        self, number: int | None, *, job: str = "", at: str = "a100-1", code: str = HANGS
    ) -> int:
        environment = {"PATH": "/usr/bin:/bin", "SLURM_JOB_ID": job or self.node.job}
        environment["SLURMD_NODENAME"] = at
        if number is not None:
            environment["LOCAL_RANK"] = str(number)
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "hanging"
        return process.pid

    def lines(self) -> list[dict[str, Any]]:
        return list(lines(self.path))

    def line(self, fits: Callable[[dict[str, Any]], bool] = lambda line: True) -> dict[str, Any]:
        """The newest line, once it fits."""
        found: list[dict[str, Any]] = []

        def look() -> bool:
            found[:] = self.lines()[-1:]
            return bool(found) and fits(found[0])

        wait(look, lambda: f"newest: {found}")
        return found[0]

    def end(self) -> None:
        for process in self.started:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # with what it has started itself
        for process in self.started:
            process.communicate()


def wait(happens: Callable[[], bool], otherwise: Callable[[], object] = str) -> None:
    end = time.monotonic() + 60
    while not happens():
        assert time.monotonic() < end, otherwise()
        time.sleep(0.02)


@pytest.fixture
def watched(node: Node) -> Iterator[Watched]:
    found = Watched(node)
    yield found
    found.end()


def test_a_line_holds_this_jobs_cards_and_no_others(watched: Watched) -> None:
    watched.node.has(NVSWITCH)
    watched.start(CUDA_VISIBLE_DEVICES="4,5", SLUICE_RESTART="2")
    line = watched.line()
    assert abs(line["at"] - time.time()) < 20
    assert (line["job"], line["restart"]) == (watched.node.job, 2)
    assert (line["procs"], line["expected"]) == (0, None)
    assert line["cards"] == [
        {
            "i": at,
            "uuid": uuid(at),
            "util": 90 + at,
            "mem": 10**9 * (at + 1),
            "mem_total": 85_899_345_920,
            "power": 301.5,
            "clock": 1410,
            "ecc": at,
            "procs": 1,
        }
        for at in (4, 5)
    ]


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"CUDA_VISIBLE_DEVICES": f"{uuid(6)},{uuid(1)}"}, [1, 6]),
        ({"CUDA_VISIBLE_DEVICES": "NoDevFiles", "SLURM_STEP_GPUS": "2,3"}, [2, 3]),
        ({"SLURM_JOB_GPUS": "7"}, [7]),
        ({"CUDA_VISIBLE_DEVICES": "1,9"}, []),
        ({"CUDA_VISIBLE_DEVICES": "GPU-nobody"}, []),
        ({}, []),
    ],
)
def test_the_cards_are_found_by_whatever_names_them(
    watched: Watched, variables: dict[str, str], expected: list[int]
) -> None:
    watched.node.has(NVSWITCH)
    watched.start(**variables)
    assert [told["i"] for told in watched.line()["cards"]] == expected


def test_under_a_device_cgroup_all_visible_cards_are_ours(watched: Watched) -> None:
    watched.node.has(busy(0, hidden=1) + busy(1, hidden=1) + busy(4) + busy(5))
    watched.start(SLURM_STEP_GPUS="4,5")
    assert [told["uuid"] for told in watched.line()["cards"]] == [uuid(4), uuid(5)]


def test_mig_slices_tell_what_they_can(watched: Watched) -> None:
    watched.node.has(
        busy(0, mig=1) + "slice 0 uuid=MIG-1 used=5 total=9\nslice 0 uuid=MIG-2 used=6 total=9\n"
    )
    watched.start(CUDA_VISIBLE_DEVICES="MIG-2,MIG-1")
    told = watched.line()["cards"]
    found = [(one["i"], one["uuid"], one["mem"], one["util"]) for one in told]
    assert found == [(0, "MIG-2", 6, None), (1, "MIG-1", 5, None)]


def test_what_a_card_does_not_tell_is_null(watched: Watched) -> None:
    watched.node.has(card(0) + busy(1) + "fail nvmlDeviceGetPowerUsage 15\n")
    watched.start(CUDA_VISIBLE_DEVICES="0,1")
    silent, lost = watched.line()["cards"]
    assert {name for name, value in silent.items() if value is None} == {
        *("util", "mem", "mem_total", "power", "clock", "ecc", "procs")
    }
    assert (lost["power"], lost["util"]) == (None, 91)


def test_as_many_cards_as_go_into_a_line(watched: Watched) -> None:
    bus = [f"0000:{at:02x}:00.0" for at in range(1, 41)]
    big = "util=100 used=191000000000 total=191000000000 power=1000500 clock=2100 ecc=99 procs=10"
    machine = [f"card uuid={uuid(at)} bus={bus[at]} numa=0 {big}\n" for at in range(40)]
    watched.node.has("".join(machine))
    watched.start(CUDA_VISIBLE_DEVICES=",".join(str(at) for at in range(40)))
    assert len(watched.line()["cards"]) == 20


@pytest.mark.parametrize(
    "fault", ["nvmlInitWithFlags", "nvmlDeviceGetCount_v2", "nvmlDeviceGetPciInfo_v3", None]
)
def test_without_cards_the_ranks_are_still_counted(watched: Watched, fault: str | None) -> None:
    if fault:
        watched.node.has(NVSWITCH + f"fail {fault} 999\n")
    watched.rank(0)
    watched.start(CUDA_VISIBLE_DEVICES="0,1", NPROC_PER_NODE="2")
    line = watched.line(lambda line: line["procs"] == 1)
    assert (line["expected"], line["cards"]) == (2, [])


def test_a_rank_that_dies_is_missed_and_its_children_do_not_stand_in(watched: Watched) -> None:
    loader = HANGS.replace("import ctypes", "import subprocess, ctypes").replace(
        "    print", "    subprocess.Popen(['/bin/sleep', '600'])\n    print"
    )
    watched.start(NPROC_PER_NODE="3")
    watched.line(lambda line: line["procs"] == 0 and line["expected"] is None)
    watched.rank(0, code=loader)
    lost = watched.rank(1)
    watched.rank(2)
    watched.rank(None)
    watched.rank(5, job="1")
    watched.rank(6, at="a100-2")
    watched.line(lambda line: (line["procs"], line["expected"]) == (3, 3))
    os.kill(lost, signal.SIGKILL)  # and nobody has buried it yet
    watched.line(lambda line: (line["procs"], line["expected"]) == (2, 3))
    looked = JobProcesses(watched.node.job, "a100-1")
    looked.look()
    assert len(looked.ranks) == 3
    assert [rank for rank, _ in looked.rank_heads()] == [0, 2]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_at_once_and_well(watched: Watched, number: signal.Signals) -> None:
    watched.node.has(NVSWITCH)
    process = watched.start(CUDA_VISIBLE_DEVICES="0", SLUICE_WATCH_SECONDS="600")
    watched.line()
    process.send_signal(number)
    assert process.wait(10) == 0
    assert process.stderr is not None
    assert process.stderr.read() == ""


def test_it_ends_when_its_parent_does(watched: Watched) -> None:
    words = ["sh", "-c", '"$@" & echo $!; wait', "sh", *watched.node.argv("watch")]
    environment = {**watched.node.environment, "SLUICE_WATCH_SECONDS": "0.1"}
    shell = subprocess.Popen(
        words, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    watched.started.append(shell)
    assert shell.stdout is not None
    pid = int(shell.stdout.readline())
    watched.line()
    shell.kill()
    shell.wait()
    wait(lambda: not Path(f"/proc/{pid}").exists())


def test_it_ends_when_it_is_alone_for_long(watched: Watched) -> None:
    rank = watched.rank(0)
    process = watched.start(SLUICE_WATCH_ALONE="1")
    watched.line()
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(2)
    os.kill(rank, signal.SIGKILL)
    assert process.wait(10) == 0


def test_past_a_size_it_says_so_once_and_stops(watched: Watched) -> None:
    watched.node.has(NVSWITCH)
    variables = {"CUDA_VISIBLE_DEVICES": "0,1,2,3", "SLUICE_WATCH_BYTES": "8000"}
    watched.start(**variables)
    watched.line(lambda line: "text" in line)
    watched.start(**variables)
    time.sleep(1)
    assert watched.path.stat().st_size < 8000
    texts = [line["text"] for line in watched.lines() if "text" in line]
    assert texts == ["the file has 8000 bytes: no more telemetry of this node"]


def test_a_folder_that_cannot_be_written_ends_nothing(watched: Watched) -> None:
    watched.run_folder.mkdir()
    (watched.run_folder / "telemetry").write_text("a file is in the way")
    process = watched.start()
    time.sleep(0.6)
    (watched.run_folder / "telemetry").unlink()
    watched.line()
    process.terminate()
    assert process.wait(10) == 0


def test_an_environment_that_is_odd_ends_it_well(watched: Watched) -> None:
    process = watched.start(SLUICE_RESTART="soon", SLUICE_WATCH_SECONDS="often")
    _, said = process.communicate(timeout=20)
    assert process.returncode == 0
    assert "SLUICE_RESTART" in said


# stacks


def ask(watched: Watched, count: int) -> str:
    """Ask for stacks; the text of the answer with this number."""
    watched.run_folder.mkdir(exist_ok=True)
    (watched.run_folder / "stacks").mkdir(exist_ok=True)
    (watched.run_folder / "stacks" / "wanted").write_text("stall")
    answer = watched.run_folder / "stacks" / f"a100-1-{count}.txt"
    wait(answer.exists)
    return answer.read_text()


def events(watched: Watched) -> list[dict[str, Any]]:
    return list(lines(watched.run_folder / "events.jsonl"))


def test_a_hanging_rank_shows_where_it_hangs_each_time_it_is_asked(watched: Watched) -> None:
    spy = shutil.which("py-spy", path=str(Path(sys.executable).parent))
    assert spy is not None
    (watched.node.path / "py-spy").symlink_to(spy)
    pids = [watched.rank(0), watched.rank(1)]
    process = watched.start()
    text = ask(watched, 1)
    for rank, pid in enumerate(pids):
        assert f"== rank {rank} of this node, pid {pid}" in text
    assert text.count("all_reduce_that_never_returns") >= 2
    wait(lambda: len(events(watched)) == 1)
    time.sleep(0.3)
    assert "all_reduce_that_never_returns" in ask(watched, 2)
    wait(lambda: len(events(watched)) == 2)
    told = events(watched)[1]
    assert (told["kind"], told["job"]) == ("stacks", watched.node.job)
    assert told["path"] == str(watched.run_folder / "stacks" / "a100-1-2.txt")
    process.terminate()
    process.wait(10)
    watched.start()
    time.sleep(1)
    assert len(events(watched)) == 2


def test_where_py_spy_may_not_look_the_file_says_so(watched: Watched) -> None:
    said = "Error: Permission Denied: Try running again with elevated permissions"
    watched.node.program("py-spy", f"#!/bin/sh\necho '{said}' >&2\nexit 1\n")
    watched.rank(0)
    watched.start()
    text = ask(watched, 1)
    assert said in text
    assert "ptrace" in text


def test_where_py_spy_is_absent_the_file_says_so(watched: Watched) -> None:
    watched.node.environment["PATH"] = str(watched.node.path)
    watched.start()
    assert "py-spy is neither" in ask(watched, 1)


# what it costs


def test_a_line_costs_a_hundredth_of_its_ten_seconds_and_the_process_40_mb(
    watched: Watched,
) -> None:
    """Eight cards, eight ranks, ten times as often as in a job; tests/bench has a real minute."""
    watched.node.has(cards(8))
    for rank in range(8):
        watched.rank(rank)
    process = watched.start(CUDA_VISIBLE_DEVICES="0,1,2,3,4,5,6,7", SLUICE_WATCH_SECONDS="1")
    watched.line()
    begun, written = processor_seconds(process.pid), len(watched.lines())
    time.sleep(5)
    used, more = processor_seconds(process.pid) - begun, len(watched.lines()) - written
    status = Path(f"/proc/{process.pid}/status").read_text()
    peak = int(status.partition("VmHWM:")[2].split()[0])
    assert more >= 3
    assert used / more <= 0.1, f"{used} s for {more} lines"
    assert peak <= 40_000, f"{peak} kB"


def processor_seconds(pid: int) -> float:
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / HZ


def test_strangers_are_read_a_few_times_and_a_reused_number_anew(tmp_path: Path) -> None:
    def process(environ: bytes) -> None:
        folder = tmp_path / "77"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        (folder / "environ").write_bytes(environ)
        (folder / "stat").write_text("77 (a b) c) S 1 77 77")

    found = JobProcesses("4711", proc=tmp_path)
    ours = b"LOCAL_RANK=3\0SLURM_JOB_ID=4711\0"
    process(b"HOME=/\0SLURM_JOB_ID=47110\0")
    for _ in range(LOOKS):
        found.look()
        assert found.pids == set()
    (tmp_path / "77" / "environ").write_bytes(ours)
    found.look()
    assert found.pids == set()
    (tmp_path / "77").rename(tmp_path / "gone")  # keeps the inode from being given again
    process(ours)
    found.look()
    assert found.rank_heads() == [(3, 77)]
