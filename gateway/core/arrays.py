"""Job arrays: one record of Slurm may stand for many tasks, as in `60-89,91-94,96-98%10`."""

import re
from collections.abc import Collection
from dataclasses import dataclass

_PART = re.compile(r"(\d+)(?:-(\d+)(?::(\d+))?)?", re.ASCII)
_WRAPPED = re.compile(r"(?:\d+_)?\[(.*)\]", re.ASCII)
_MASK = re.compile(r"0x[0-9A-Fa-f]{1,1000001}(?:%\d+)?", re.ASCII)
MOST_TASKS = 4_000_001  # as many as Slurm lets an administrator allow (MaxArraySize)


@dataclass(frozen=True, slots=True)
class ArrayTasks:
    """`complete` is False when Slurm cut the text: the count is then only a lower bound."""

    at_least: int
    complete: bool
    throttle: int | None  # how many may run at once, by the person's own wish

    @property
    def count(self) -> int | None:
        return self.at_least if self.complete else None


def array_text(tasks: int, at_once: int | None) -> str:
    """What sbatch takes for so many tasks, counted from 0; 0 or None at once: no limit."""
    span = f"0-{tasks - 1}" if tasks > 1 else "0"
    return f"{span}%{at_once}" if at_once and at_once < tasks else span


def parse_array(text: str) -> ArrayTasks:
    """Read a task list, with or without `JOBID_[...]` around it; ValueError if it is none."""
    wrapped = _WRAPPED.fullmatch(text)
    body, _, limit = (wrapped.group(1) if wrapped else text).partition("%")
    parts = body.split(",")
    complete = True
    if parts[-1].strip() in {"...", ""}:
        # Slurm shortens the text at SLURM_BITSTR_LEN bytes (64 unless told otherwise).
        complete, parts = False, parts[:-1]
    total = sum(_tasks(part.strip()) for part in parts)
    if not total:
        raise ValueError(f"no array tasks: {text!r}")
    cut = limit.endswith("...")
    throttle = int(limit) if limit.isascii() and limit.isdigit() else None
    if limit and throttle is None and not cut:
        raise ValueError(f"no throttle: {text!r}")
    return ArrayTasks(at_least=total, complete=complete, throttle=throttle or None)


def tasks_told(text: str) -> int | None:
    """How many tasks a list of whatever origin names; slurmdbd keeps a mask of bits instead. None
    where Slurm cut it, where it is no list, or names more than an array can have."""
    if _MASK.fullmatch(text):
        count: int | None = int(text.partition("%")[0], 16).bit_count()
    else:
        try:
            count = parse_array(text).count
        except ValueError:
            return None
    return count if count and count <= MOST_TASKS else None


def tasks_of(text: str, *, most: int) -> frozenset[int]:
    """The numbers of a whole task list; none of one that was cut or is longer than `most`."""
    count = parse_array(text).count
    if count is None or count > most:
        return frozenset()
    numbers: set[int] = set()
    for part in text.partition("%")[0].split(","):
        found = _PART.fullmatch(part.strip())
        assert found is not None  # parse_array has read it
        first, last, step = found.groups()
        numbers.update(range(int(first), int(last or first) + 1, int(step or 1)))
    return frozenset(numbers)


def ranges(tasks: Collection[int]) -> str:
    """As Slurm writes them: `1,5-20`."""
    pieces: list[list[int]] = []
    for task in sorted(tasks):
        if pieces and pieces[-1][1] == task - 1:
            pieces[-1][1] = task
        else:
            pieces.append([task, task])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in pieces)


def _tasks(part: str) -> int:
    found = _PART.fullmatch(part)
    if not found:
        raise ValueError(f"no array range: {part!r}")
    first, last, step = found.group(1), found.group(2), found.group(3)
    if last is None:
        return 1
    if int(last) < int(first) or step == "0":
        raise ValueError(f"no array range: {part!r}")
    return (int(last) - int(first)) // int(step or 1) + 1


def job_number(slurm_id: int, array_job_id: int | None, array_task: int | None) -> str:
    """The id as squeue prints it: tasks of arrays have theirs in two parts."""
    if array_job_id is not None and array_task is not None:
        return f"{array_job_id}_{array_task}"
    return str(slurm_id)
