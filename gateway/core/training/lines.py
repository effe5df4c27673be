"""The lines of a run folder's files, as values. The files are a person's own and may hold anything:
what is torn, foreign, of a wrong type or beyond belief is passed over, and nothing here raises.
"""

import json
import math
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gateway.core.results import Reading, of_object

MAX_LINE_BYTES = 4000
MOST_CARDS = 64
LONGEST_TEXT = 300
_LARGEST = 2**53  # beyond it a JSON number is not exact
_LARGEST_FLOAT = 1e30
_MOST_COUNT = 2**40  # tokens of one line; sums of millions of lines still fit a database's number

SIGNS = ("ranks", "steps", "log", "cards")
RULES = ("nothing", "hold", "requeue")
# The reason of an `end` that `prepare` tells of a run which had DONE before this job.
DONE_ALREADY = "this run is done already"
_ACTIONS = ("exit", "requeue", "requeuehold", "wait")

# Each kind of event, and the facts that are kept of it.
KINDS: Mapping[str, frozenset[str]] = {
    kind: frozenset(facts.split())
    for kind, facts in {
        "start": "nodes resume_step resume_path",
        "code": "commit clean remote",
        "ready": "world step",
        "model": "params flops_per_token",
        "save_begin": "step",
        "saved": "step seconds bytes path",
        "save_failed": "step error",
        "pruned": "step",
        "uploaded": "step place seconds bytes",
        "upload_failed": "step place error",
        "restored": "step place seconds bytes",
        "stop_requested": "reason",
        "stopped": "step",
        "done": "step",
        "stall": "signs rule text",
        "stacks": "path",
        "smoke": "ok world step_seconds peak_bytes save_seconds save_bytes loaded text",
        "end": "code action reason step",
    }.items()
}
_WHOLE = frozenset(
    {"nodes", "resume_step", "world", "step", "bytes", "peak_bytes", "save_bytes", "code"}
)
_NUMBERS = frozenset({"params", "flops_per_token", "seconds", "step_seconds", "save_seconds"})
_FLAGS = frozenset({"ok", "loaded", "clean"})


@dataclass(frozen=True, slots=True)
class Whose:
    """Which lines are the job's: those with its key, from its submit until now (seconds since
    1970, with room for clocks that differ), of no more restarts than it can have had."""

    key: str
    since: float
    until: float
    restarts: int


@dataclass(frozen=True, slots=True)
class Event:
    at: float
    restart: int
    kind: str
    step: int | None
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Metric:
    """`tokens` and `samples` since the line before; `seconds` of one step."""

    at: float
    restart: int
    step: int
    loss: float | None
    tokens: int | None
    samples: int | None
    seconds: float | None
    peak_bytes: int | None


@dataclass(frozen=True, slots=True)
class Measured:
    """A line of metrics.jsonl: what the training's charts know of it, and what it reports under
    names of its own."""

    at: float
    metric: Metric | None
    reading: Reading | None


@dataclass(frozen=True, slots=True)
class Card:
    """`util` in percent, `mem` and `mem_total` in bytes, `power` in watts."""

    i: int
    util: float | None
    mem: int | None
    mem_total: int | None
    power: float | None
    ecc: int | None


@dataclass(frozen=True, slots=True)
class Sample:
    """One look at a node: `procs` of `expected` ranks live there."""

    at: float
    restart: int
    procs: int | None
    expected: int | None
    cards: tuple[Card, ...]


def event(line: str, whose: Whose) -> Event | None:
    found = _read(line, whose)
    kind = found.get("kind") if found else None
    if found is None or not isinstance(kind, str) or kind not in KINDS:
        return None
    facts = {
        name: value
        for name in sorted(KINDS[kind] & found.keys())
        if (value := _fact(name, found[name])) is not None
    }
    return Event(found["at"], found["restart"], kind, facts.pop("step", None), facts)


def measured(line: str, whose: Whose) -> Measured | None:
    found = _read(line, whose)
    if found is None:
        return None
    values, step = of_object(found), _whole(found.get("step"))
    reading = Reading(found["at"], found["restart"], step, values) if values else None
    metric = None if step is None else _metric(found, step)
    return Measured(found["at"], metric, reading) if metric or reading else None


def _metric(found: Mapping[str, Any], step: int) -> Metric:
    return Metric(
        at=found["at"],
        restart=found["restart"],
        step=step,
        loss=_number(found.get("loss"), signed=True),
        tokens=_rounded(found.get("tokens"), most=_MOST_COUNT),
        samples=_rounded(found.get("samples"), most=_MOST_COUNT),
        seconds=_number(found.get("seconds")),
        peak_bytes=_rounded(found.get("peak_bytes")),
    )


def sample(line: str, whose: Whose) -> Sample | None:
    found = _read(line, whose)
    if found is None:
        return None
    rows = found.get("cards")
    cards = [_card(row) for row in rows[:MOST_CARDS]] if isinstance(rows, list) else []
    return Sample(
        at=found["at"],
        restart=found["restart"],
        procs=_whole(found.get("procs")),
        expected=_whole(found.get("expected")),
        cards=tuple({card.i: card for card in cards if card is not None}.values()),
    )


def split(text: str, *, size: int) -> tuple[list[str], int]:
    """The whole lines of a piece that is `size` bytes long, and how many bytes they are.

    A last line without its end is left for the next time, unless it is longer than a line may be,
    or holds bytes that are no text: those cannot be counted. Then it is given up.
    """
    *whole, rest = text.split("\n")
    left = len(rest.encode("utf-8", "replace"))
    if left > MAX_LINE_BYTES or "\ufffd" in rest:
        left = 0
    return [line for line in whole if line and len(line) <= MAX_LINE_BYTES], max(0, size - left)


def _read(line: str, whose: Whose) -> dict[str, Any] | None:
    """The object, with a believable `at` and `restart`, if it is this job's."""
    if whose.key not in line:
        return None  # most lines of a shared folder's file are an earlier job's
    try:
        found = json.loads(line, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.get("job") != whose.key:
        return None
    at, restart = _number(found.get("at")), _whole(found.get("restart", 0))
    if at is None or not whose.since <= at <= whose.until:
        return None
    if restart is None or restart > whose.restarts:
        return None
    return {**found, "at": at, "restart": restart}


def _no_number(_: str) -> None:
    """NaN and Infinity are no JSON, but Python writes them; the library writes null."""


def _fact(name: str, value: object) -> Any:
    if name in _WHOLE:
        return _whole(value, signed=name == "code")
    if name in _NUMBERS:
        return _number(value)
    if name in _FLAGS:
        return value if isinstance(value, bool) else None
    if name == "signs":
        return [one for one in SIGNS if one in value] if isinstance(value, list) else None
    if name in {"rule", "action"}:
        return value if value in (RULES if name == "rule" else _ACTIONS) else None
    return _text(value)


def _card(row: object) -> Card | None:
    number = _whole(row.get("i")) if isinstance(row, dict) else None
    if not isinstance(row, dict) or number is None or number > 1023:
        return None
    util = _number(row.get("util"))
    return Card(
        i=number,
        util=None if util is None else min(util, 100.0),
        mem=_rounded(row.get("mem")),
        mem_total=_rounded(row.get("mem_total")),
        power=_number(row.get("power")),
        ecc=_rounded(row.get("ecc")),
    )


def _number(value: object, *, signed: bool = False) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, int) and abs(value) > _LARGEST_FLOAT:
        return None  # it may be too large for a float
    found = float(value)
    if not math.isfinite(found) or abs(found) > _LARGEST_FLOAT or (found < 0 and not signed):
        return None
    return found


def _rounded(value: object, *, most: int = _LARGEST) -> int | None:
    """Counts that a script may give as 12.0."""
    found = _number(value)
    return None if found is None or found > most else round(found)


def _whole(value: object, *, signed: bool = False) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > _LARGEST:
        return None
    return value if value >= 0 or signed else None


def _text(value: object) -> str | None:
    """A short line that every database can hold: no control characters, no half ones."""
    if not isinstance(value, str) or not value:
        return None
    kept = (c for c in value[:LONGEST_TEXT] if unicodedata.category(c) not in {"Cc", "Cs"})
    return "".join(kept) or None
