"""What a job list can be asked: whose jobs, which of them, in what order."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from gateway.core.states import JobState


class StateClass(StrEnum):
    """Words that stand for several states; always in small letters, Slurm's own are capitals."""

    ACTIVE = "active"
    PENDING = "pending"
    RUNNING = "running"
    ENDED = "ended"
    FAILED = "failed"


class Sort(StrEnum):
    """By submit time the whole list is in order; by the others its newest thousand."""

    SUBMIT = "submit"
    START = "start"
    WAIT = "wait"
    RUN_TIME = "run_time"
    GPUS = "gpus"


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose jobs may be seen at all: those of `user`, and of all in `groups`; or everybody's."""

    user: str | None
    groups: tuple[str, ...] = ()

    @classmethod
    def mine(cls, user: str) -> "Scope":
        return cls(user)

    @classmethod
    def of_groups(cls, groups: tuple[str, ...], user: str) -> "Scope":
        return cls(user, groups)

    @classmethod
    def all(cls) -> "Scope":
        return cls(None)

    def __post_init__(self) -> None:
        if self.user is None and self.groups:
            raise ValueError("a scope of groups is somebody's")


@dataclass(frozen=True, slots=True)
class JobFilters:
    """All that are given must hold. `states` holds states or classes, in any mixture.

    `name` is how the name begins; with a * before it, what the name contains.
    `since` and `until` are about the submit time.
    """

    states: tuple[str, ...] = ()
    group: str | None = None
    partition: str | None = None
    name: str | None = None
    slurm_id: int | None = None
    user: str | None = None
    template: str | None = None
    qos: str | None = None
    since: datetime | None = None
    until: datetime | None = None


_FAILED = (
    JobState.FAILED,
    JobState.TIMEOUT,
    JobState.NODE_FAIL,
    JobState.BOOT_FAIL,
    JobState.DEADLINE,
    JobState.OUT_OF_MEMORY,
)


def states_of(words: tuple[str, ...]) -> tuple[str, ...]:
    """The states that these words stand for. In small letters `failed` is a class; FAILED is
    that state alone; a word that is neither is kept as it is."""
    found: dict[str, None] = {}
    for word in words:
        is_class = word in list(StateClass)
        found |= dict.fromkeys(_states_of(StateClass(word)) if is_class else (word.upper(),))
    return tuple(found)


def _states_of(wanted: StateClass) -> tuple[str, ...]:
    match wanted:
        case StateClass.PENDING:
            states = [state for state in JobState if state.is_pending]
        case StateClass.RUNNING:
            states = [state for state in JobState if state.is_active]
        case StateClass.ACTIVE:
            states = [state for state in JobState if state.is_pending or state.is_active]
        case StateClass.ENDED:
            states = [state for state in JobState if state.is_ended or state is JobState.PREEMPTED]
        case StateClass.FAILED:
            states = list(_FAILED)
    return tuple(state.value for state in states)
