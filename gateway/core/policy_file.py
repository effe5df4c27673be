"""Policy as a TOML file that can live in a site's git: stable order, exact values, and only what
differs from a QoS or group without any setting.

Times are `D-HH:MM:SS`, factors decimals in text, resources tables of whole numbers (memory in
MiB, and what is counted in minutes in TRES-minutes). `load` takes what `dump` writes.
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gateway.core.credits import MILLION
from gateway.core.qos import (
    FIELDS,
    GROUP_FIELDS,
    Field,
    GroupPolicy,
    Kind,
    Policy,
    Qos,
    Tres,
    TresLimit,
    Value,
    fields_of,
    tres,
    value,
)
from gateway.core.qos_checks import problems
from gateway.errors import GatewayError

HEAD = "# Policy of QoS and groups; what is not named has no limit. Memory is in MiB.\n"
PARENT = "parent"
_SUFFIX = {Kind.MINUTES: "_minutes", Kind.SECONDS: "_seconds", Kind.MILLIONTHS: "_millionths"}
_BARE = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
_TIME = re.compile(r"(?:(\d{1,7})-)?(\d{1,9}):(\d{2}):(\d{2})", re.ASCII)
_FACTOR = re.compile(r"(\d{1,7})(?:\.(\d{1,6}))?", re.ASCII)
_TABLES = {"qos": FIELDS, "groups": GROUP_FIELDS}


Plain = None | int | str | list[str] | dict[str, int]


@dataclass(frozen=True, slots=True)
class FileProblem:
    """`place`: a dotted key such as qos.high.max_wall; empty where the text itself cannot be read.
    `code`: one of core.qos_checks, or file_…; `detail`: the parser's words, or what is known."""

    place: str
    code: str
    detail: str = ""


class BadPolicyFile(GatewayError):
    """Every problem at once. Nothing was read."""

    code, status = "bad_policy_file", 422

    def __init__(self, found: tuple[FileProblem, ...]) -> None:
        super().__init__("; ".join(f"{one.place}: {one.code}" for one in found))
        self.problems = found


@dataclass(frozen=True, slots=True)
class PolicyFile:
    """In the order of the file."""

    qos: tuple[Qos, ...]
    groups: tuple[GroupPolicy, ...]


def key_of(field: Field) -> str:
    """The field's name in the file: its unit is in the value there."""
    return field.key.removesuffix(_SUFFIX.get(field.kind, ""))


def dump(qos: Iterable[Qos], groups: Iterable[GroupPolicy] = ()) -> str:
    """By name."""
    tables = [_table("qos", one) for one in sorted(qos, key=lambda one: one.name)]
    tables += [_table("groups", one) for one in sorted(groups, key=lambda one: one.name)]
    return "\n".join([HEAD, *tables])


def plain(field: Field, found: Value) -> Plain:
    """For JSON and TOML: times and factors in text, resources by name. None: not set."""
    match field.kind:
        case Kind.TRES:
            rows = found if isinstance(found, tuple) else ()
            return {row.tres: row.limit for row in rows if isinstance(row, TresLimit)}
        case Kind.MINUTES if isinstance(found, int):
            return _clock(found * 60)
        case Kind.SECONDS if isinstance(found, int):
            return _clock(found)
        case Kind.MILLIONTHS if isinstance(found, int):
            return _decimal(found)
        case Kind.SHARES if found is None:
            return PARENT
    return [str(one) for one in found] if isinstance(found, tuple) else found


def value_text(field: Field, found: Value) -> str:
    """As TOML; of what is not set `none`, which is no TOML."""
    match plain(field, found):
        case None:
            return "none"
        case str() as text:
            return _quoted(text)
        case int() as number:
            return str(number)
        case list() as names:
            return "[" + ", ".join(_quoted(name) for name in names) + "]"
        case limits:
            return "{" + ", ".join(f"{_key(name)} = {n}" for name, n in limits.items()) + "}"


def load(text: str) -> PolicyFile:
    """Raises BadPolicyFile with the place of each problem."""
    try:
        read = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # too many digits, or brackets, for the parser
        raise BadPolicyFile((FileProblem("", "file_unreadable", str(error)),)) from error
    found: list[FileProblem] = []
    for key in read.keys() - _TABLES.keys():
        found.append(FileProblem(key, "file_unknown_key", ", ".join(_TABLES)))
    qos = [_read(Qos, "qos", *one, found) for one in _tables(read, "qos", found)]
    groups = [_read(GroupPolicy, "groups", *one, found) for one in _tables(read, "groups", found)]
    if found:
        raise BadPolicyFile(tuple(sorted(found, key=lambda one: one.place)))
    return PolicyFile(
        tuple(one for one in qos if isinstance(one, Qos)),
        tuple(one for one in groups if isinstance(one, GroupPolicy)),
    )


def _table(kind: str, policy: Policy) -> str:
    blank = type(policy)(name=policy.name)
    lines = [
        f"{key_of(field)} = {value_text(field, value(policy, field))}"
        for field in fields_of(policy)
        if value(policy, field) != value(blank, field)
    ]
    return "\n".join([f"[{kind}.{_key(policy.name)}]", *lines, ""])


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _quoted(name)


def _quoted(text: str) -> str:
    """JSON's escapes are TOML's, but for DEL, which TOML does not take bare."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _clock(seconds: int) -> str:
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"{days}-{hours:02}:{minutes:02}:{rest:02}"


def _decimal(millionths: int) -> str:
    whole, part = divmod(millionths, MILLION)
    return f"{whole}.{part:06}".rstrip("0").removesuffix(".")


def _tables(
    read: Mapping[str, Any], kind: str, found: list[FileProblem]
) -> list[tuple[str, Mapping[str, Any]]]:
    tables = read.get(kind, {})
    if not isinstance(tables, dict):
        found.append(FileProblem(kind, "file_not_a_table"))
        return []
    wrong = [name for name, table in tables.items() if not isinstance(table, dict)]
    found += [FileProblem(_place(kind, name), "file_not_a_table") for name in wrong]
    return [(name, table) for name, table in tables.items() if name not in wrong]


def _read(
    make: type[Qos] | type[GroupPolicy],
    kind: str,
    name: str,
    table: Mapping[str, Any],
    found: list[FileProblem],
) -> Policy | None:
    fields = {key_of(field): field for field in _TABLES[kind]}
    values: dict[str, Value] = {}
    wrong: list[FileProblem] = []
    for key, given in table.items():
        if key not in fields:
            wrong.append(FileProblem(_place(kind, name, key), "file_unknown_key"))
            continue
        try:
            values[fields[key].key] = _READERS[fields[key].kind](given)
        except _Wrong as error:
            wrong.append(FileProblem(_place(kind, name, key), error.code, repr(given)))
    found += wrong
    if wrong:
        return None
    made = make(name=name, **values)  # type: ignore[arg-type]  # by kind, just above
    keys = {field.key: key for key, field in fields.items()}
    found += [
        FileProblem(_place(kind, name, *([keys[one.key]] if one.key in keys else [])), one.code)
        for one in problems(made)
    ]
    return made


def _place(*keys: str) -> str:
    return ".".join(_key(key) for key in keys)


class _Wrong(Exception):
    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def _integer(given: object) -> int:
    # True is an int to isinstance.
    if not isinstance(given, int) or isinstance(given, bool):
        raise _Wrong("file_not_a_whole_number")
    return given


def _text(given: object) -> str:
    if not isinstance(given, str):
        raise _Wrong("file_not_a_text")
    return given


def _seconds(given: object) -> int:
    match = _TIME.fullmatch(given) if isinstance(given, str) else None
    if match is None:
        raise _Wrong("file_not_a_time")
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    if minutes > 59 or seconds > 59 or (match[1] and hours > 23):
        raise _Wrong("file_not_a_time")
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _minutes(given: object) -> int:
    minutes, rest = divmod(_seconds(given), 60)
    if rest:
        raise _Wrong("file_not_whole_minutes")
    return minutes


def _millionths(given: object) -> int:
    match = _FACTOR.fullmatch(given) if isinstance(given, str) else None
    if match is None:
        raise _Wrong("file_not_a_factor")
    return int(match[1]) * MILLION + int((match[2] or "").ljust(6, "0"))


def _shares(given: object) -> int | None:
    return None if given == PARENT else _integer(given)


def _names(given: object) -> tuple[str, ...]:
    if not isinstance(given, list):
        raise _Wrong("file_not_a_list")
    return tuple(sorted(_text(one) for one in given))


def _limits(given: object) -> Tres:
    if not isinstance(given, dict):
        raise _Wrong("file_not_resources")
    return tres({name: _integer(limit) for name, limit in given.items()})


_READERS: Mapping[Kind, Callable[[object], Value]] = {
    Kind.TEXT: _text,
    Kind.COUNT: _integer,
    Kind.NUMBER: _integer,
    Kind.MINUTES: _minutes,
    Kind.SECONDS: _seconds,
    Kind.MILLIONTHS: _millionths,
    Kind.TRES: _limits,
    Kind.NAMES: _names,
    Kind.FLAGS: _names,
    Kind.NAME: _text,
    Kind.SHARES: _shares,
    Kind.MODES: _names,
}
