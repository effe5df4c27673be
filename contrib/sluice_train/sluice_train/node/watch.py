"""`watch`: a line of telemetry every few seconds, one process a node, beside the training.

It must cost next to nothing, and its own trouble must never be the job's: whatever fails is said
once on standard error, and the exit code is 0.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any

from sluice_train.files import LINE_BYTES, RunFolder
from sluice_train.node.cards import Doubt, Nvml
from sluice_train.node.processes import JobProcesses
from sluice_train.node.stacks import Stacks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SECONDS = 10.0
SHORTEST_SECONDS = 0.1
LOOK_SECONDS = 1.0  # for a wish of stacks, and for our parent
ALONE_SECONDS = 300.0
MOST_BYTES = 128_000_000  # of a node's file: eleven days of eight cards
MOST_CARDS = 20  # of a line of 4,000 bytes; more are only MIG slices
LISTS = ("CUDA_VISIBLE_DEVICES", "SLURM_STEP_GPUS", "SLURM_JOB_GPUS")
NO_LIST = ("", "NoDevFiles")


def main(argv: Sequence[str]) -> int:  # noqa: ARG001 - all verbs are called alike
    """Watch until the job is over, or TERM or INT comes. Always 0."""
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGINT, _end)
    try:
        with ExitStack() as stack:
            Watch(os.environ, Cards(os.environ, stack)).run()
    except Exception as error:  # the training goes on without telemetry
        _say(f"ends: {type(error).__name__}: {error}")
    return 0


def _end(number: int, frame: object) -> None:  # noqa: ARG001 - as signal calls it
    sys.exit(0)


class Cards:
    """This job's cards. Without NVML, or where they cannot be told from others', there are none."""

    def __init__(self, environment: Mapping[str, str], stack: ExitStack) -> None:
        self._listed: list[tuple[int, str, Any]] = []
        entries = listed(environment)
        if not entries:
            return
        try:
            self._nvml = stack.enter_context(Nvml())
            self._listed = _of_job(entries, self._nvml)
        except Exception as error:  # whatever the driver does: no cards, but still the ranks
            _say(f"no cards: {error}")

    def sample(self) -> list[dict[str, Any]]:
        """The contract's `cards`, of the moment."""
        return [
            {"i": at, "uuid": uuid, **self._nvml.sample(handle)}
            for at, uuid, handle in self._listed
        ]


def listed(environment: Mapping[str, str]) -> list[str]:
    """The entries of the first variable that names GPUs of this job; none in a job without."""
    for name in LISTS:
        if environment.get(name, "") not in NO_LIST:
            return environment[name].split(",")
    return []


def _of_job(entries: list[str], nvml: Nvml) -> list[tuple[int, str, Any]]:
    """Number by bus id, UUID and handle of each. NVML itself ignores the variables.

    Under a device cgroup only the job's cards are visible, whatever numbers they have outside.
    A MIG slice is numbered by its place in the variable.
    """
    if all(entry.startswith("MIG-") for entry in entries):
        return [(at, uuid, nvml.slice(uuid)) for at, uuid in enumerate(entries)][:MOST_CARDS]
    visible = [(at, nvml.uuid(handle), handle) for at, (_, handle) in enumerate(nvml.handles())]
    if len(visible) == len(entries):
        return visible[:MOST_CARDS]
    if all(entry.isdigit() for entry in entries):
        ours = [card for card in visible if str(card[0]) in entries]
    else:
        ours = [card for card in visible if card[1].startswith(tuple(entries))]
    if len(ours) != len(entries):
        raise Doubt(f"{','.join(entries)} are not certain among {len(visible)} cards")
    return ours[:MOST_CARDS]


class Watch:
    """The loop. The clock is the node's monotonic one; `at` in the lines is its wall clock."""

    def __init__(self, environment: Mapping[str, str], cards: Cards) -> None:
        self._run = RunFolder.of_environment(environment)
        self._node = environment.get("SLURMD_NODENAME") or os.uname().nodename
        self._path = self._run.telemetry(self._node)
        self._seconds = max(SHORTEST_SECONDS, _number(environment, "SLUICE_WATCH_SECONDS", SECONDS))
        self._most_bytes = _number(environment, "SLUICE_WATCH_BYTES", MOST_BYTES)
        self._alone = _number(environment, "SLUICE_WATCH_ALONE", ALONE_SECONDS)
        self._per_node = int(_number(environment, "NPROC_PER_NODE", 0)) or None
        self._cards = cards
        self._processes = JobProcesses(
            environment.get("SLURM_JOB_ID", ""), environment.get("SLURMD_NODENAME", "")
        )
        self._stacks = Stacks(self._run, self._node)
        self._parent = os.getppid()
        self._ranks_seen = False
        self._full = self._is_full()

    def run(self) -> None:
        """Write lines until our parent is gone, or all else of the job has been for long."""
        due = company = time.monotonic()
        while os.getppid() == self._parent:
            now = time.monotonic()
            if now >= due:
                self._processes.look()
                self._write()
                due = max(due + self._seconds, now)
                company = now if self._processes.pids else company
            if now - company > self._alone:
                return
            if self._stacks.wanted():
                self._write_stacks()
            time.sleep(max(0.0, min(LOOK_SECONDS, due - time.monotonic())))

    def line(self) -> dict[str, Any]:
        """The contract's telemetry but for its stamp."""
        alive = len(self._processes.local_ranks())
        # A script without ranks, or whose ranks have not begun, is not short of any.
        self._ranks_seen = self._ranks_seen or alive > 0
        expected = self._per_node if self._ranks_seen else None
        return {"procs": alive, "expected": expected, "cards": self._cards.sample()}

    def _write(self) -> None:
        if self._full:
            return
        # A full disk, or a folder that is gone for a moment: the next line may go.
        with suppress(OSError, ValueError):
            self._run.line(self._path, self.line())
        self._full = self._is_full()
        if self._full:
            text = f"the file has {self._most_bytes:.0f} bytes: no more telemetry of this node"
            with suppress(OSError):
                self._run.line(self._path, {"text": text})

    def _is_full(self) -> bool:
        try:
            return self._path.stat().st_size > self._most_bytes - LINE_BYTES
        except OSError:
            return False

    def _write_stacks(self) -> None:
        self._processes.look()
        with suppress(OSError):
            self._stacks.write(self._processes.rank_heads())


def _number(environment: Mapping[str, str], name: str, default: float) -> float:
    try:
        return float(environment.get(name) or default)
    except ValueError:
        return default


def _say(text: str) -> None:
    node = os.environ.get("SLURMD_NODENAME") or os.uname().nodename
    with suppress(OSError):
        print(f"watch on {node}: {text}", file=sys.stderr, flush=True)
