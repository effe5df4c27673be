"""What the node tools ask of Slurm. Silence and errors are never taken for an answer."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass

ANSWER_SECONDS = 20
ENDED = {
    "BOOT_FAIL",
    "CANCELLED",
    "COMPLETED",
    "DEADLINE",
    "FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "PREEMPTED",
    "TIMEOUT",
}


@dataclass(frozen=True)
class JobNow:
    """What Slurm says of a job; `ends_at` (seconds since 1970) is None where it does not tell."""

    preempted: bool = False
    cancelled: bool = False
    ends_at: float | None = None


def queue_state(job: str) -> str | None:
    """The state of `job` in the queue, empty when Slurm knows no live one; None: it cannot tell."""
    code, out, errors = _ask("squeue", "-h", "-j", job, "-o", "%T")
    if code == 0:
        live = [state for state in out.split() if state not in ENDED]
        return live[0] if live else ""
    return "" if "invalid job id" in errors.lower() else None


def job_now(job: str) -> JobNow:
    """Whether `job` is preempted or cancelled, and when it ends; nothing where Slurm is silent."""
    code, out, _ = _ask("scontrol", "show", "job", "-o", job)
    return reading(out) if code == 0 else JobNow()


def reading(line: str) -> JobNow:
    """What a line of `scontrol show job -o` says, its times as seconds since 1970.

    A job that is being ended is COMPLETING: for its time limit, by a preemption, or cancelled.
    """
    preempted = _value(line, "PreemptTime")[:1].isdigit()
    ending = _value(line, "JobState") in ("COMPLETING", "CANCELLED")
    at_limit = _value(line, "Reason") == "TimeLimit"
    end = _value(line, "EndTime")
    return JobNow(
        preempted=preempted,
        cancelled=ending and not preempted and not at_limit,
        ends_at=float(end) if end.isdigit() else None,
    )


def _value(line: str, name: str) -> str:
    found = re.search(rf"(?:^|\s){name}=(\S+)", line)
    return found[1] if found else ""


def _ask(*argv: str) -> tuple[int, str, str]:
    environment = {**os.environ, "SLURM_TIME_FORMAT": "%s"}
    try:
        answer = subprocess.run(  # noqa: S603
            argv,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=ANSWER_SECONDS,
            stdin=subprocess.DEVNULL,
            env=environment,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return -1, "", str(error)
    return answer.returncode, answer.stdout, answer.stderr
