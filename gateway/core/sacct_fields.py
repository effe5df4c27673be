"""The single fields of a record that sacct printed, read once for each text."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Generic, NamedTuple, TypeVar

from gateway.core.arrays import tasks_told
from gateway.core.durations import Special, parse_slurm_duration, parse_slurm_limit
from gateway.core.states import JobState, parse_state

V = TypeVar("V")

MOST_REMEMBERED = 50_000  # texts of one kind: memory stays flat however long the file is
_NOBODY = frozenset({"", "none assigned", "none", "unknown", "(null)"})
_TASK = re.compile(r"(\d+)_(\d+)", re.A)
_TASKS = re.compile(r"(\d+)_\[[^\]]*\]?", re.A)
_COMPONENT = re.compile(r"(\d+)\+(\d+)", re.A)
_NUMBER = re.compile(r"\d{1,15}", re.A)
_EXIT = re.compile(r"(\d{1,9}):(\d{1,9})", re.A)


class Unreadable(ValueError):
    """This record cannot be understood; it is to be held with its text."""


class State(NamedTuple):
    name: str
    over: bool
    pending: bool
    cancelled_by: str | None


class Remembered(dict[str, V], Generic[V]):
    """Each text is read once. Forgets all when it has grown large."""

    def __init__(self, read: Callable[[str], V]) -> None:
        super().__init__()
        self._read = read

    def __missing__(self, text: str) -> V:
        if len(self) >= MOST_REMEMBERED:
            self.clear()
        value = self[text] = self._read(text)
        return value


def ids(raw: str, printed: str) -> tuple[int, int | None, int | None]:
    """Slurm's own id of the job, and the array and the task that it is."""
    array_id = task = None
    if raw.isascii() and raw.isdigit():
        number = int(raw)
        if number and (printed == raw or not printed):
            return number, None, None
    else:
        number = _own_id(raw or printed)
    found = _TASK.fullmatch(printed) or _TASKS.fullmatch(printed)
    if found:
        array_id = int(found[1])
        task = int(found[2]) if found.re is _TASK else None
    elif not _COMPONENT.fullmatch(printed) and not (printed.isascii() and printed.isdigit()):
        raise Unreadable("no job id")
    if not 0 < number < 2**32:
        raise Unreadable("no job id")
    return number, array_id, task


def tasks_of(printed: str) -> int | None:
    """Of the one record of an array's tasks that have not started, their number."""
    return tasks_told(printed) if "[" in printed else None


def _own_id(text: str) -> int:
    if text.isascii() and text.isdigit():
        return int(text)
    # The components of a heterogeneous job get consecutive ids.
    if found := _COMPONENT.fullmatch(text):
        return int(found[1]) + int(found[2])
    # While no task has left the array, its record has the array's own id.
    if found := _TASKS.fullmatch(text):
        return int(found[1])
    if _TASK.fullmatch(text):
        raise Unreadable("an array task has an id of its own: dump JobIDRaw too")
    raise Unreadable("no job id")


def state_of(text: str) -> State:
    state, by = parse_state(text)
    if state is JobState.UNKNOWN:
        raise Unreadable("no job state")
    return State(state.value, state.ends_run, state.is_pending, None if by is None else str(by))


def epoch(seconds: int) -> datetime | None:
    if not 0 < seconds < 0xFFFFFFFE:
        return None
    return datetime.fromtimestamp(seconds, UTC)


def seconds_of(text: str) -> int | None:
    if _NUMBER.fullmatch(text):
        return int(text)
    printed = parse_slurm_duration(text)
    return None if isinstance(printed, Special) else int(printed)


def limit_of(text: str) -> int | None:
    """No limit, and one that is not decided, are no number of minutes; never 0."""
    minutes = parse_slurm_limit(text)
    return None if isinstance(minutes, Special) else minutes


def exit_of(text: str) -> tuple[int | None, int | None]:
    found = _EXIT.fullmatch(text)
    return (int(found[1]), int(found[2]) or None) if found else (None, None)


def count_of(text: str) -> int | None:
    return int(text) if _NUMBER.fullmatch(text) else None


def text_of(text: str) -> str | None:
    return text or None


def nodes_of(text: str) -> str | None:
    return None if text.lower() in _NOBODY else text


def reason_of(text: str) -> str | None:
    return None if text in {"", "None"} else text
