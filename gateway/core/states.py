"""Job states of Slurm 26.05: the base states, and the flags that Slurm prints in their place."""

import re
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum


class JobState(StrEnum):
    """Slurm's own words. UNKNOWN says nothing: it neither ends nor starts a job."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUSPENDED = "SUSPENDED"
    COMPLETED = "COMPLETED"
    CANCELLED = "CANCELLED"
    FAILED = "FAILED"
    TIMEOUT = "TIMEOUT"
    NODE_FAIL = "NODE_FAIL"
    PREEMPTED = "PREEMPTED"
    BOOT_FAIL = "BOOT_FAIL"
    DEADLINE = "DEADLINE"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"

    # Flags over a base state. squeue and sacct print the flag alone.
    REQUEUED = "REQUEUED"
    REQUEUE_HOLD = "REQUEUE_HOLD"
    SPECIAL_EXIT = "SPECIAL_EXIT"
    REQUEUE_FED = "REQUEUE_FED"
    RESV_DEL_HOLD = "RESV_DEL_HOLD"
    EXPEDITING = "EXPEDITING"
    CONFIGURING = "CONFIGURING"
    COMPLETING = "COMPLETING"
    RESIZING = "RESIZING"
    STOPPED = "STOPPED"
    SIGNALING = "SIGNALING"
    STAGE_OUT = "STAGE_OUT"
    REVOKED = "REVOKED"

    UNKNOWN = "UNKNOWN"

    @property
    def is_base(self) -> bool:
        return self in _BASE

    @property
    def is_pending(self) -> bool:
        """The job waits in the queue, perhaps again, perhaps held."""
        return self in _PENDING

    @property
    def is_active(self) -> bool:
        """The job holds nodes now."""
        return self in _ACTIVE

    @property
    def ends_run(self) -> bool:
        """This run is over. The job itself may go on: see `is_ended`."""
        return self in _ENDED or self in _ENDS_RUN_ONLY

    @property
    def is_ended(self) -> bool:
        """The job is over. PREEMPTED and REQUEUED end a run, not the job."""
        return self in _ENDED

    @property
    def may_return(self) -> bool:
        """Slurm requeues such a job by itself where requeue is allowed: look for a newer run
        before calling the job ended."""
        return self in _MAY_RETURN

    @property
    def succeeded(self) -> bool:
        return self is JobState.COMPLETED


_S = JobState
_BASE = frozenset(list(JobState)[:12])
_PENDING = frozenset(
    {
        _S.PENDING,
        _S.REQUEUED,
        _S.REQUEUE_HOLD,
        _S.SPECIAL_EXIT,
        _S.REQUEUE_FED,
        _S.RESV_DEL_HOLD,
        _S.EXPEDITING,
    }
)
_ACTIVE = frozenset(
    {
        _S.RUNNING,
        _S.SUSPENDED,
        _S.CONFIGURING,
        _S.COMPLETING,
        _S.RESIZING,
        _S.STOPPED,
        _S.SIGNALING,
        _S.STAGE_OUT,
    }
)
_ENDED = frozenset(
    {
        _S.COMPLETED,
        _S.CANCELLED,
        _S.FAILED,
        _S.TIMEOUT,
        _S.NODE_FAIL,
        _S.BOOT_FAIL,
        _S.DEADLINE,
        _S.OUT_OF_MEMORY,
        _S.REVOKED,
    }
)
_ENDS_RUN_ONLY = frozenset({_S.PREEMPTED, _S.REQUEUED})
_MAY_RETURN = _ENDS_RUN_ONLY | {_S.NODE_FAIL, _S.BOOT_FAIL}

_BY_UID = re.compile(r"by (\d{1,10})", re.ASCII)
_CUT = "+"  # sacct's mark of a column that was too narrow: CANCELLED+, OUT_OF_ME+


def parse_state(printed: str | Sequence[str]) -> tuple[JobState, int | None]:
    """The state, and who cancelled the job where Slurm says it ("CANCELLED by 64030").

    A list, as the JSON output has it, gives its base state before any flag. What cannot be
    read is UNKNOWN.
    """
    words = printed.split(",") if isinstance(printed, str) else list(printed)
    found = [_one(word.strip()) for word in words]
    for state, by_uid in found:
        if state.is_base:
            return state, by_uid
    return found[0] if found else (JobState.UNKNOWN, None)


def _one(word: str) -> tuple[JobState, int | None]:
    name, _, rest = word.partition(" ")
    by = _BY_UID.fullmatch(rest.strip())
    return _named(name.upper()), int(by[1]) if by else None


def _named(name: str) -> JobState:
    if name.endswith(_CUT):
        fits = [state for state in JobState if state.startswith(name.removesuffix(_CUT))]
        return fits[0] if len(fits) == 1 else JobState.UNKNOWN
    try:
        return JobState(name)
    except ValueError:
        return JobState.UNKNOWN


def used_nodes(state: JobState, start: datetime | None) -> bool:
    """Whether this record is a run. Without a start nothing ran, whatever the state says."""
    return start is not None and (state.is_active or state.ends_run)
