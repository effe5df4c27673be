"""Each state as a sentence, and the mark (a shape and a colour) under which it is drawn."""

from gateway.core.states import JobState as S
from gateway.core.states import parse_state
from gateway.web.texts import lazy_gettext as _l

STATE_TEXTS = {
    S.PENDING: _l("Waiting in the queue"),
    S.RUNNING: _l("Running"),
    S.SUSPENDED: _l("Suspended: stopped for now, it keeps its nodes"),
    S.COMPLETED: _l("Ended well"),
    S.CANCELLED: _l("Cancelled"),
    S.FAILED: _l("Ended with an error"),
    S.TIMEOUT: _l("Stopped at its time limit"),
    S.NODE_FAIL: _l("Lost: a node failed under it"),
    S.PREEMPTED: _l("Made room for a more urgent job"),
    S.BOOT_FAIL: _l("Its nodes did not start"),
    S.DEADLINE: _l("Missed its deadline"),
    S.OUT_OF_MEMORY: _l("Stopped: it used more memory than it had"),
    S.REQUEUED: _l("Requeued: waiting to run again"),
    S.REQUEUE_HOLD: _l("Requeued and held: it waits until it is released"),
    S.SPECIAL_EXIT: _l("Requeued and held after a special exit"),
    S.REQUEUE_FED: _l("Requeued in another cluster of the federation"),
    S.RESV_DEL_HOLD: _l("Held: its reservation was deleted"),
    S.EXPEDITING: _l("Moved to the front of the queue after a failed node"),
    S.CONFIGURING: _l("Starting: its nodes are getting ready"),
    S.COMPLETING: _l("Ending: its nodes are tidying up"),
    S.RESIZING: _l("Changing its size"),
    S.STOPPED: _l("Stopped for now, it keeps its nodes"),
    S.SIGNALING: _l("Getting a signal"),
    S.STAGE_OUT: _l("Ending: its data are being copied away"),
    S.REVOKED: _l("Runs in another cluster of the federation"),
    S.UNKNOWN: _l("Slurm names a state that this portal does not know"),
}

SUBMISSION_TEXTS = {
    "queued": _l("Waiting for Slurm: it will be sent by itself as soon as Slurm answers"),
    "after_smoke": _l("Waiting for its smoke job: it will be sent as soon as Slurm has that one"),
    "sending": _l("Being sent to Slurm"),
    "unknown": _l(
        "Sent, but Slurm has not answered: looking for the job, it will not be sent twice"
    ),
    "accepted": _l("Slurm has it"),
    "refused": _l("Slurm refused it: nothing was started"),
    "withdrawn": _l("Taken back before Slurm had it"),
}

_STOPPED = {S.SUSPENDED, S.STOPPED, S.REQUEUE_HOLD, S.SPECIAL_EXIT, S.RESV_DEL_HOLD}
_AGAIN = {S.PREEMPTED, S.REQUEUED, S.REQUEUE_FED, S.EXPEDITING}
_MARKS = {
    "queued": "waiting",
    "sending": "waiting",
    "unknown": "unknown",
    "refused": "failed",
    "withdrawn": "cancelled",
    "accepted": "waiting",
}


def mark(state: str) -> str:
    """One of: waiting, running, stopped, again, done, failed, cancelled, unknown."""
    if state in _MARKS:
        return _MARKS[state]
    known = parse_state(state)[0]
    if known in _STOPPED:
        return "stopped"
    if known in _AGAIN:
        return "again"
    if known.is_pending:
        return "waiting"
    if known.is_active:
        return "running"
    if known in {S.CANCELLED, S.REVOKED}:
        return "cancelled"
    if known.succeeded:
        return "done"
    return "failed" if known.is_ended else "unknown"
