"""`finish`: when the program has ended, brings the last checkpoint away and says what comes next.

Prints the action for the batch script; the sentence why goes to stderr, that is into the log.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from sluice_train import checkpoint
from sluice_train.files import RunFolder, lines, read_object, whole
from sluice_train.node import slurm, smoke
from sluice_train.node.decision import EXIT, Decision, Found, decide
from sluice_train.node.upload import flush

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sluice_train.node.slurm import JobNow

# Left for putting the job back into the queue, after which nothing can be done for it.
REQUEUE_SECONDS = 20
SHORTEST_LEAD = 60


def main(argv: list[str]) -> int:
    """Print `exit N`, `requeue`, `requeuehold` or `wait`. 0; in the first pass of a smoke job 1
    when there is to be no second one."""
    # Slurm sends TERM to all of a job that it ends: what is decided here is needed then.
    for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    asked = _parser().parse_args(argv)
    run = RunFolder.of_environment()
    _see_marks(run)
    smoking = bool(os.environ.get("SLUICE_SMOKE"))
    if asked.smoke_pass:
        return smoke.between(run, asked.code)
    job = slurm.job_now(run.job)
    stop_asked = bool(asked.signal) or run.stop.exists()
    if smoking:
        decision = _smoke_decision(run, asked.code, stop_asked=stop_asked)
    else:
        flush(run, os.environ, seconds_left=_flush_seconds(job, os.environ, stop_asked=stop_asked))
        decision = decide(_found(run, asked, job, stop_asked=stop_asked))
    newest = checkpoint.newest(run.checkpoints)
    with suppress(OSError):
        run.event(
            "end",
            code=decision.code,
            action=decision.action,
            reason=decision.reason,
            step=newest.step if newest else None,
        )
    print(f"sluice: {decision.reason}: {decision.words}", file=sys.stderr)
    print(decision.words)
    return 0


def _see_marks(run: RunFolder) -> None:
    """Rank 0 may have written DONE on another node. NFS remembers for up to a minute that a name
    was not there, but asks the server anew when its folder is opened."""
    with suppress(OSError):
        list(run.path.iterdir())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="finish")
    parser.add_argument("--code", type=int, required=True, help="what the program ended with")
    parser.add_argument("--signal", default="", help="why it was asked to stop; empty: it was not")
    parser.add_argument("--started-with", default="", help="step or path of the first checkpoint")
    parser.add_argument("--smoke-pass", type=int, choices=(1,), help="between the two passes")
    return parser


def _found(run: RunFolder, asked: argparse.Namespace, job: JobNow, *, stop_asked: bool) -> Found:
    newest = checkpoint.newest(run.checkpoints)
    stalled = read_object(run.stalled)
    started = re.search(r"(\d+)\D*$", asked.started_with)
    return Found(
        code=asked.code,
        done=run.done.exists(),
        managed=run.managed.exists(),
        stopped=run.stopped.exists(),
        stop_asked=stop_asked,
        rule=str(stalled.get("rule")) if stalled else None,
        preempted=job.preempted,
        waits_for_slurm=os.environ.get("SLUICE_ON_PREEMPT") == "wait",
        cancelled=job.cancelled,
        newest=newest.step if newest else None,
        started_with=int(started[1]) if started else None,
        restart=run.restart,
        max_restarts=whole("SLUICE_MAX_RESTARTS", 0),
    )


def _smoke_decision(run: RunFolder, code: int, *, stop_asked: bool) -> Decision:
    verdict = smoke.judge(
        events=[line for line in lines(run.events) if _is_ours(run, line)],
        metrics=[line for line in lines(run.metrics) if _is_ours(run, line)],
        expected=whole("EXPECT_WORLD", 1),
        code=code,
        managed=run.managed.exists(),
        stop_asked=stop_asked,
    )
    with suppress(OSError):
        run.event("smoke", **verdict.facts)
    return Decision(EXIT, 0 if verdict.ok else smoke.FAILED, verdict.text)


def _is_ours(run: RunFolder, line: Mapping[str, object]) -> bool:
    return line.get("job") == run.job and line.get("restart") == run.restart


def _flush_seconds(job: JobNow, given: Mapping[str, str], *, stop_asked: bool) -> float:
    """How long the last upload may take.

    After a stop a third of the warning's time, most of which the save itself had; else all of it
    again. Never into the time that the requeue needs.
    """
    if given.get("SLUICE_FLUSH_SECONDS"):
        return float(given["SLUICE_FLUSH_SECONDS"])
    lead = max(SHORTEST_LEAD, whole("SLUICE_LEAD", SHORTEST_LEAD, given))
    bound = lead / 3 if stop_asked or job.preempted else float(lead)
    if job.ends_at is None:
        return bound
    return max(0.0, min(bound, job.ends_at - time.time() - REQUEUE_SECONDS))
