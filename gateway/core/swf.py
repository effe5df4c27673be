"""The Standard Workload Format of the Parallel Workloads Archive, version 2.2.

One job a line of 18 numbers, -1 unknown; before them lines that begin with `;` and say things of
the whole log as `; Key: value`. Times of submission count from `UnixStartTime`.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from gateway.core.states import JobState

FIELDS = (
    *("job", "submit", "wait", "run", "processors", "cpu_time", "memory", "asked_processors"),
    *("asked_time", "asked_memory", "status", "user", "group", "application", "queue"),
    *("partition", "preceding", "think_time"),
)
# 2, 3 and 4 are stretches of a job that has a line of its own for the whole.
PARTS = ("2", "3", "4")
STATES = {"0": JobState.FAILED, "1": JobState.COMPLETED, "5": JobState.CANCELLED}
COMMENT = ";"
_SAID = re.compile(r";\s*([A-Za-z]\w*):\s*(.*?)\s*", re.ASCII)
_WHOLE = re.compile(r"\d{1,10}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Head:
    """`begin`: seconds since 1970 of the second 0; None where the log does not say it."""

    begin: int | None
    computer: str | None


def head(lines: Iterable[str]) -> Head:
    """What the lines before the first job say."""
    said: dict[str, str] = {}
    for line in lines:
        if not line.startswith(COMMENT):
            if line.strip():
                break
            continue
        if found := _SAID.fullmatch(line):
            said.setdefault(found[1].lower(), found[2])
    begin = said.get("unixstarttime", "")
    return Head(int(begin) if _WHOLE.fullmatch(begin) else None, said.get("computer") or None)
