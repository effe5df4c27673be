"""What becomes of the job when its program has ended: the contract's table as one function."""

from __future__ import annotations

from dataclasses import dataclass

EXIT, REQUEUE, REQUEUE_HELD, WAIT = "exit", "requeue", "requeuehold", "wait"
RESTARTS_SPENT, NOTHING_SAVED, NOT_DONE = 75, 76, 77


@dataclass(frozen=True)
class Found:
    """What is there when the program has ended with `code`.

    `rule` is that of a stall which was acted on; `newest` and `started_with` are the steps of the
    newest complete checkpoint, now and at the start; `restart` counts from 0. `waits_for_slurm`:
    a preempted run is given back, so accounting must say PREEMPTED.
    """

    code: int
    done: bool = False
    managed: bool = False
    stopped: bool = False
    stop_asked: bool = False
    rule: str | None = None
    preempted: bool = False
    waits_for_slurm: bool = False
    cancelled: bool = False
    newest: int | None = None
    started_with: int | None = None
    restart: int = 0
    max_restarts: int = 0

    @property
    def progressed(self) -> bool:
        """Whether a complete checkpoint is newer than the one that the run began with."""
        if self.newest is None:
            return False
        return self.started_with is None or self.newest > self.started_with


@dataclass(frozen=True)
class Decision:
    """`action` for the batch script, the exit `code` where it is `exit`, and why."""

    action: str
    code: int
    reason: str

    @property
    def words(self) -> str:
        """What the batch script reads."""
        return f"{EXIT} {self.code}" if self.action == EXIT else self.action


def decide(found: Found) -> Decision:
    """The first row of the table that fits."""
    if found.done:
        return Decision(EXIT, 0, "the training is done")
    if found.cancelled:
        # Slurm would put even a cancelled job back into the queue if it were asked to.
        return Decision(EXIT, found.code, "the job was cancelled")
    if found.rule == "hold":
        return _again(found, "the run stalled: it waits, held, for a decision", held=True)
    if found.rule == "requeue":
        return _again(found, "the run stalled: it starts again from its newest checkpoint")
    if found.preempted and (found.stopped or found.stop_asked or found.code != 0):
        return _preempted(found)
    if found.stopped or (found.stop_asked and found.progressed):
        return _again(found, "the run saved and stopped: it goes on from there")
    # One that does not use the library and ended without an error has not heard of the stop.
    if found.stop_asked and (found.managed or found.code != 0):
        reason = "the run was asked to stop and saved nothing new: a restart would repeat the same"
        return Decision(EXIT, NOTHING_SAVED, reason)
    if found.code == 0 and found.managed:
        reason = "the script ended without an error, and without saying that the training is done"
        return Decision(EXIT, NOT_DONE, reason)
    if found.code == 0:
        return Decision(EXIT, 0, "the program ended without an error")
    return Decision(EXIT, found.code, f"the program ended with code {found.code}")


def _preempted(found: Found) -> Decision:
    """Whether or not anything new was saved: a preemption is not the script's fault."""
    if found.waits_for_slurm:
        return Decision(WAIT, found.code, "the job is preempted: Slurm puts it back into the queue")
    return _again(found, "the job is preempted: it puts itself back into the queue")


def _again(found: Found, reason: str, *, held: bool = False) -> Decision:
    if found.restart >= found.max_restarts:
        spent = f"{reason}; but its {found.max_restarts} restarts are spent"
        return Decision(EXIT, RESTARTS_SPENT, spent)
    return Decision(REQUEUE_HELD if held else REQUEUE, 0, reason)
