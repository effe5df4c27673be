"""Is this record another run of that job? Slurm's job id alone does not say it.

A requeue keeps the id and sets a new submit time; a cluster whose state was cleared hands the
same ids out again.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

# slurmctld forgets a finished job after MinJobAge, five minutes by default; afterwards nobody
# can requeue it.
REQUEUED_WITHIN = timedelta(hours=1)
_SAME_MOMENT = timedelta(seconds=2)
TOKEN_PREFIX = "sluice:"  # noqa: S105  # a mark in the job's comment, no password
_LONGEST_TOKEN = 100


@dataclass(frozen=True, slots=True)
class Stint:
    """What a record says of who and when. `token` None: the record has no comment of ours."""

    user: str
    name: str
    submit: datetime
    end: datetime | None
    restarts: int
    may_return: bool
    token: str | None


def is_requeue_of(earlier: Stint, later: Stint) -> bool:
    """Whether `later` continues `earlier`; both carry the same Slurm id."""
    if earlier.user != later.user or later.submit <= earlier.submit:
        return False
    if earlier.token and later.token:
        return earlier.token == later.token
    if earlier.name != later.name:
        return False
    if earlier.may_return and earlier.end and abs(later.submit - earlier.end) <= _SAME_MOMENT:
        return True  # where accounting does not count restarts, the times still fit
    # While the old run is still completing, slurmctld counts the restart under the old submit time.
    if later.restarts < max(earlier.restarts, 1):
        return False
    if earlier.may_return and later.restarts - earlier.restarts > 1:
        return True  # runs between the two are not known yet, so the gap says nothing
    return earlier.end is None or later.submit - earlier.end <= REQUEUED_WITHIN


def token_in(comment: str | None) -> str | None:
    """The submission's token in a job's comment. Anyone may write it: check the user too."""
    if not comment or not comment.startswith(TOKEN_PREFIX):
        return None
    token = comment.removeprefix(TOKEN_PREFIX).split()[:1]
    return token[0] if token and len(token[0]) <= _LONGEST_TOKEN else None
