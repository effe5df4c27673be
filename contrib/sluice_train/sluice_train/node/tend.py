"""`tend`: one process beside the program, on the first node: uploads, and the guard against stalls.

A child of the batch script; it ends with it, or on TERM. Nothing that fails here fails the job.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sluice_train import checkpoint
from sluice_train.files import RunFolder, whole, write_whole
from sluice_train.node.halting import Halt, Halted
from sluice_train.node.sight import Sight
from sluice_train.node.stall import Guard, Limits, Stall
from sluice_train.node.upload import Uploader

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType

LOOK_SECONDS = 10.0
UPLOAD_SECONDS = 10.0
PAUSE_SECONDS = 30.0
PARENT_SECONDS = 2.0
STACKS_SECONDS = 20.0
STALE_LOOKS = 6  # of `watch`, after which a node's telemetry is no news
SHORTEST_STALE_SECONDS = 10.0
ACTING_RULES = ("hold", "requeue")


def main(argv: list[str]) -> int:  # noqa: ARG001
    """0, whatever happened."""
    halt, parent = Halt(), os.getppid()

    def end(_signal: int, _frame: FrameType | None) -> None:
        # Not in the handler itself: it may have interrupted what holds the same lock.
        threading.Thread(target=halt.now, daemon=True).start()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    # The training's work comes first.
    with suppress(OSError):
        os.nice(10)
    run = RunFolder.of_environment()
    uploads = _uploads(run, halt, os.environ)
    try:
        _say_world(os.environ)
        with suppress(Halted):
            _guarded(run, halt, os.environ, parent=parent)
    except (OSError, ValueError) as error:
        print(f"sluice: the guard against stalls ended: {error}", file=sys.stderr)
        with suppress(Halted):
            _wait_for_parent(halt, parent)
    halt.now()
    if uploads is not None:
        uploads.join(timeout=5)
    return 0


def _uploads(run: RunFolder, halt: Halt, given: Mapping[str, str]) -> threading.Thread | None:
    try:
        uploader = Uploader.of_environment(run, halt, given)
    except ValueError as error:
        print(f"sluice: nothing is uploaded: {error}", file=sys.stderr)
        return None
    if uploader is None:
        return None
    every = _seconds(given, "SLUICE_UPLOAD_SECONDS", UPLOAD_SECONDS)
    pause = _seconds(given, "SLUICE_UPLOAD_PAUSE_SECONDS", PAUSE_SECONDS)
    thread = threading.Thread(
        target=uploader.keep_up, kwargs={"every": every, "pause": pause}, daemon=True
    )
    thread.start()
    return thread


def _say_world(given: Mapping[str, str]) -> None:
    """Whether the checkpoint is of as many ranks as this job has, which `prepare` cannot know yet.

    Not refused: some formats are loaded by any number of ranks.
    """
    path = given.get("SLUICE_RESUME")
    resumed = checkpoint.complete(Path(path)) if path else None
    world = whole("EXPECT_WORLD", 0, given)
    if resumed and resumed.world and world and resumed.world != world:
        text = f"the checkpoint is of {resumed.world} ranks, this job has {world}"
        print(f"sluice: {text}", file=sys.stderr, flush=True)


def _guarded(run: RunFolder, halt: Halt, given: Mapping[str, str], *, parent: int) -> None:
    """Look every few seconds until the batch script is gone. Halted; ValueError, OSError."""
    every = _seconds(given, "SLUICE_GUARD_SECONDS", LOOK_SECONDS)
    watched = _seconds(given, "SLUICE_WATCH_SECONDS", 10.0)
    log = Path(given["SLUICE_LOG"]) if given.get("SLUICE_LOG", "").startswith("/") else None
    sight = Sight(
        run,
        nodes=whole("SLURM_NNODES", 1, given),
        log=log if log and log.is_file() else None,
        stale=max(SHORTEST_STALE_SECONDS, STALE_LOOKS * watched),
    )
    guard = Guard(Limits.of_environment(given))
    rule = given.get("SLUICE_ON_STALL") or "nothing"
    looked = 0.0
    while os.getppid() == parent:
        if time.monotonic() - looked >= every:
            looked = time.monotonic()
            # A run that is to stop, or is done, ends by itself or by the batch script.
            if not run.stop.exists() and not run.done.exists():
                stall = guard.look(looked, sight.look(time.time()))
                if stall is not None:
                    act(run, stall, rule=rule, parent=parent, halt=halt)
                    guard.log_is(sight.log_bytes())
        halt.pause(min(PARENT_SECONDS, every))


def act(run: RunFolder, stall: Stall, *, rule: str, parent: int, halt: Halt) -> None:
    """Say it, have the stacks taken, then do what the group's rule says. OSError, Halted."""
    print(f"sluice: the run has stalled: {stall.text}", file=sys.stderr, flush=True)
    run.event("stall", signs=stall.signs, rule=rule, text=stall.text)
    _take_stacks(run, halt)
    # While the stacks were taken it may have been stopped for another reason, or have ended.
    if rule not in ACTING_RULES or run.stop.exists() or run.done.exists():
        return
    write_whole(run.stalled, json.dumps({"signs": stall.signs, "rule": rule}) + "\n")
    write_whole(run.stop, "stall\n")
    os.kill(parent, signal.SIGUSR2)


def _take_stacks(run: RunFolder, halt: Halt) -> None:
    """Ask `watch` of every node for the stacks, and wait until each has answered, or not long."""
    wanted = run.stacks / "wanted"
    run.stacks.mkdir(exist_ok=True)
    nodes = [path.stem for path in (run.path / "telemetry").glob("*.jsonl")]
    before = set(run.stacks.iterdir())
    wanted.touch()
    until = time.monotonic() + STACKS_SECONDS
    while nodes and time.monotonic() < until:
        new = [path.name for path in set(run.stacks.iterdir()) - before - {wanted}]
        if all(any(name.startswith(f"{node}-") for name in new) for node in nodes):
            return
        halt.pause(0.5)


def _wait_for_parent(halt: Halt, parent: int) -> None:
    while os.getppid() == parent:
        halt.pause(PARENT_SECONDS)


def _seconds(given: Mapping[str, str], name: str, default: float) -> float:
    return float(given.get(name) or default)
