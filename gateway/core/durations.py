"""Time limits as people type them, and durations as Slurm prints them. Two languages, two parsers.

People: a bare number is minutes, as for sbatch. Slurm's output: two fields are minutes and seconds.
"""

import re
from enum import Enum
from typing import NewType

from gateway.errors import Refused

Seconds = NewType("Seconds", float)

MAX_MINUTES = 10 * 366 * 24 * 60  # far under Slurm's 32 bits, whose top values mean "no limit"
_LONGEST_TEXT = 40

# An input method left in Chinese mode types these; their meaning is beyond doubt.
_FULL_WIDTH = str.maketrans("０１２３４５６７８９：－", "0123456789:-")
_NO_LIMIT = frozenset({"unlimited", "infinite", "-1"})
_TYPED = re.compile(r"(?:(?P<days>\d+)-)?(?P<clock>\d+(?::\d+){0,2})", re.ASCII)
_PRINTED = re.compile(
    r"(?:(?P<days>\d+)-)?(?:(?P<hours>\d+):)?(?P<minutes>\d+):(?P<seconds>\d+(?:\.\d+)?)", re.ASCII
)


class BadTimeLimit(Refused):
    """A typed time limit that is no time, or asks for none. `code` is a message key."""

    def __init__(self, code: str) -> None:
        super().__init__(code, field="time_limit")


class Special(Enum):
    """What Slurm prints in place of a duration. None of them is zero."""

    UNLIMITED = "unlimited"
    PARTITION_LIMIT = "partition_limit"  # not decided yet: the partition's maximum will hold
    UNKNOWN = "unknown"


def parse_time_limit(text: str) -> int:
    """Whole minutes, seconds rounded up; raises BadTimeLimit.

    Reads what sbatch reads: M, M:S, H:M:S, D-H, D-H:M, D-H:M:S.
    """
    return _minutes(parse_seconds(text))


def parse_seconds(text: str) -> int:
    """The same texts, to the second; 0 is a time here. Raises BadTimeLimit."""
    typed = text.strip().translate(_FULL_WIDTH)
    if not typed:
        raise BadTimeLimit("time_limit_empty")
    if typed.lower() in _NO_LIMIT:
        raise BadTimeLimit("time_limit_none")
    match = _TYPED.fullmatch(typed) if len(typed) <= _LONGEST_TEXT else None
    if match is None:
        raise BadTimeLimit("time_limit_unreadable")
    clock = [int(part) for part in match["clock"].split(":")]
    if match["days"] is None:
        return _clock_seconds(clock)
    return _day_seconds(int(match["days"]), clock)


def _clock_seconds(clock: list[int]) -> int:
    if len(clock) == 1:
        return clock[0] * 60
    hours = clock[0] if len(clock) == 3 else 0
    minutes, seconds = clock[-2:]
    _require_range(seconds, 60)
    if len(clock) == 3:
        _require_range(minutes, 60)
    return hours * 3600 + minutes * 60 + seconds


def _day_seconds(days: int, clock: list[int]) -> int:
    hours, minutes, seconds = [*clock, 0, 0][:3]
    _require_range(hours, 24)
    _require_range(minutes, 60)
    _require_range(seconds, 60)
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _require_range(value: int, below: int) -> None:
    """Slurm adds 1:90 up without a word; here it is more likely a slip of the unit."""
    if value >= below:
        raise BadTimeLimit("time_limit_out_of_range")


def _minutes(seconds: int) -> int:
    minutes = -(-seconds // 60)
    if minutes == 0:
        raise BadTimeLimit("time_limit_none")  # Slurm reads 0 as "no limit"
    if minutes > MAX_MINUTES:
        raise BadTimeLimit("time_limit_too_long")
    return minutes


def parts(minutes: int) -> tuple[int, int, int]:
    """Days, hours and minutes, to say a time limit in words."""
    hours, rest = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return days, hours, rest


def format_time_limit(minutes: int) -> str:
    """D-HH:MM:SS, the one form that nobody can read in another unit."""
    days, hours, rest = parts(minutes)
    return f"{days}-{hours:02}:{rest:02}:00"


def parse_slurm_duration(text: str | None) -> Seconds | Special:
    """Read a printed duration or limit; never raises, since one bad field must not stop an import.

    A bare number is UNKNOWN: the raw columns come in seconds or in minutes, by column.
    """
    printed = (text or "").strip()
    word = printed.lower()
    if word in {"unlimited", "infinite"}:
        return Special.UNLIMITED
    if word == "partition_limit":
        return Special.PARTITION_LIMIT
    match = _PRINTED.fullmatch(printed)
    if match is None or (match["days"] is not None and match["hours"] is None):
        return Special.UNKNOWN
    minutes = (int(match["days"] or 0) * 24 + int(match["hours"] or 0)) * 60 + int(match["minutes"])
    return Seconds(minutes * 60 + float(match["seconds"]))


def parse_slurm_limit(text: str | None) -> int | Special:
    """A time-limit column as whole minutes: TimelimitRaw's bare minutes, or a printed limit."""
    printed = (text or "").strip()
    if re.fullmatch(r"\d{1,10}", printed, re.ASCII):
        return int(printed)
    duration = parse_slurm_duration(printed)
    return duration if isinstance(duration, Special) else -(-int(duration) // 60)
