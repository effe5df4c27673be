"""Which column of somebody's job history is what: from a mapping file, or from its names.

timezone = "Europe/Oslo"        # of times that name none
delimiter = ";"
[columns]                       # what = "column"; NAMES of csv_names lists the whats
submit = "queued"
[constants]                     # what = "the same for all rows"
cluster = "north"
[units]                         # of bare numbers: elapsed, wait, suspended, limit, times
limit = "minutes"
[factors]                       # numbers are multiplied: gpus, cpus, nodes
gpus = 0.001
[times]
format = "%d.%m.%Y %H:%M"       # as strftime has it
zero = 1500000000               # the second 0 of numbers that count from the trace's begin
[states]                        # word or number of the file = state of Slurm, "" unknown
"7" = "COMPLETED"
[tres]                          # numeric resource = its name
1002 = "gres/gpu"
[rules]
started = "sacct"               # or "start": who has a start did start
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from zoneinfo import ZoneInfo

from gateway.core.csv_names import MINUTES, NAMES
from gateway.core.states import JobState
from gateway.errors import GatewayError

UNITS: Mapping[str, float] = {
    "milliseconds": 0.001,
    "seconds": 1,
    "minutes": 60,
    "hours": 3600,
    "days": 86400,
}
DURATIONS = ("elapsed", "wait", "suspended", "limit")
COUNTS = ("gpus", "cpus", "nodes")
STARTED = ("sacct", "start")


class BadMapping(GatewayError):
    """The mapping cannot be used, or the columns do not say enough. The message says why."""

    code = "bad_mapping"


@dataclass(frozen=True, slots=True)
class CsvMapping:
    """`columns`: what by column. `unit` and `factors` by what; of times, `unit["times"]`.
    `zero` None: numbers are seconds since 1970, and 0 is no time."""

    columns: Mapping[str, str]
    constants: Mapping[str, str] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    factors: Mapping[str, float] = field(default_factory=dict)
    states: Mapping[str, JobState | None] = field(default_factory=dict)
    tres: Mapping[int, str] = field(default_factory=dict)
    delimiter: str | None = None
    timezone: str | None = None
    time_format: str | None = None
    zero: int | None = None
    started: str = "sacct"

    def seconds(self, what: str) -> float:
        """How many seconds one of what a bare number in this column counts."""
        return UNITS[self.units.get(what, "seconds")]


def recognised(header: Sequence[str], given: CsvMapping | None = None) -> CsvMapping:
    """The mapping with the columns of `given`, and each other by its name. Raises BadMapping when
    a named column is not there, or when nothing tells a submission and a start."""
    places = {name.strip().lower(): name for name in reversed(header)}
    mapping = given or CsvMapping({})
    for what, column in mapping.columns.items():
        if column not in header:
            raise BadMapping(
                f"the file has no column {column!r} (for {what}). It has: {', '.join(header)}"
            )
    found = dict(mapping.columns)
    if given is None or not given.columns:
        found = _by_name(places)
    units = _units(found) | dict(mapping.units)
    complete = replace(mapping, columns=found, units=units)
    _enough(complete, header)
    return complete


def _by_name(places: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for what, names in NAMES.items():
        column = next((places[name] for name in names if name in places), None)
        if column is not None:
            found[what] = column
    if found.get("tasks") == found.get("id"):
        found.pop("tasks", None)  # who has no other column looks there anyway
    return found


def _units(columns: Mapping[str, str]) -> dict[str, str]:
    limit = columns.get("limit", "").strip().lower()
    return {"limit": "minutes"} if limit in MINUTES else {}


def _enough(mapping: CsvMapping, header: Sequence[str]) -> None:
    has = {*mapping.columns, *mapping.constants}
    lacking = []
    if not ("submit" in has or {"start", "wait"} <= has):
        lacking.append("submit")
    if not ("start" in has or {"submit", "wait"} <= has or {"end", "elapsed"} <= has):
        lacking.append("start")
    if lacking:
        raise BadMapping(
            f"no column tells {' and '.join(lacking)}. The file has: {', '.join(header)}. "
            "Say which is what in a mapping file: --mapping FILE.toml"
        )


def from_toml(text: str) -> CsvMapping:
    """The mapping that a file says; raises BadMapping with what is wrong in it."""
    try:
        told = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadMapping(f"the mapping is no TOML: {error}") from error
    tables = {name: _table(told.pop(name, {}), name) for name in _TABLES}
    words = {name: _text(told.pop(name), name) for name in _WORDS if name in told}
    if told:
        raise BadMapping(f"the mapping knows no {', '.join(map(repr, told))}")
    times, rules = tables["times"], tables["rules"]
    _only(times, ("format", "zero"), "times")
    _only(rules, ("started",), "rules")
    started = rules.get("started", "sacct")
    if started not in STARTED:
        raise BadMapping(f"[rules] started is one of {', '.join(STARTED)}")
    zone, zero = words.get("timezone"), times.get("zero")
    if zone is not None:
        _zone(zone)
    if zero is not None and type(zero) is not int:
        raise BadMapping("[times] zero is a whole number of seconds since 1970")
    form = times.get("format")
    return CsvMapping(
        columns=_columns(tables["columns"], "columns"),
        constants=_columns(tables["constants"], "constants"),
        units=_chosen_units(tables["units"]),
        factors=_factors(tables["factors"]),
        states={word: _state(state) for word, state in tables["states"].items()},
        tres=_resources(tables["tres"]),
        delimiter=words.get("delimiter"),
        timezone=zone,
        time_format=None if form is None else _text(form, "times.format"),
        zero=zero,
        started=started,
    )


_TABLES = ("columns", "constants", "units", "factors", "times", "states", "tres", "rules")
_WORDS = ("delimiter", "timezone")


def _table(value: object, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadMapping(f"[{name}] is a table")
    return value


def _text(value: object, name: str) -> str:
    if not isinstance(value, str) or not value:
        raise BadMapping(f"{name} is a text")
    return value


def _only(table: Mapping[str, object], known: Sequence[str], name: str) -> None:
    strange = sorted(set(table) - set(known))
    if strange:
        raise BadMapping(f"[{name}] knows no {', '.join(strange)}; it knows {', '.join(known)}")


def _columns(table: Mapping[str, object], name: str) -> dict[str, str]:
    _only(table, list(NAMES), name)
    return {what: _text(value, f"{name}.{what}") for what, value in table.items()}


def _chosen_units(table: Mapping[str, object]) -> dict[str, str]:
    _only(table, (*DURATIONS, "times"), "units")
    for what, unit in table.items():
        if unit not in UNITS:
            raise BadMapping(f"[units] {what} is one of {', '.join(UNITS)}")
    return {what: str(unit) for what, unit in table.items()}


def _factors(table: Mapping[str, object]) -> dict[str, float]:
    _only(table, COUNTS, "factors")
    for what, factor in table.items():
        if not isinstance(factor, int | float) or not 0 < factor < 1e9:
            raise BadMapping(f"[factors] {what} is a number above 0")
    return {what: float(str(factor)) for what, factor in table.items()}


def _state(word: object) -> JobState | None:
    if word == "":
        return None
    if not isinstance(word, str) or word not in {*JobState} - {JobState.UNKNOWN}:
        raise BadMapping(f"[states] {word!r} is no state of Slurm, such as COMPLETED")
    return JobState(word)


def _resources(table: Mapping[str, object]) -> dict[int, str]:
    if not all(number.isascii() and number.isdigit() for number in table):
        raise BadMapping("[tres] names numbers: 1002 = 'gres/gpu'")
    return {int(number): _text(name, f"tres.{number}") for number, name in table.items()}


def _zone(name: str) -> None:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise BadMapping(f"{name!r} is no time zone") from error
