"""Strict JSON for frozen dataclasses: what is unknown, missing or mistyped is refused."""

import dataclasses
import types
from datetime import UTC, datetime
from enum import Enum
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from gateway.errors import BadMessage

T = TypeVar("T")


def dump(value: Any) -> Any:
    """Turn a message into what `json.dumps` takes. Times become whole or broken epoch seconds."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: dump(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return value.timestamp()
    if isinstance(value, tuple):
        return [dump(item) for item in value]
    if isinstance(value, dict):
        return {key: dump(item) for key, item in value.items()}
    return value


def parse(kind: type[T], data: Any) -> T:
    """Build a `kind` from parsed JSON, or raise BadMessage naming the field."""
    parsed: T = _parse(kind, data, kind.__name__)
    return parsed


def _parse(kind: Any, data: Any, where: str) -> Any:
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _parse_optional(kind, data, where)
    if origin is tuple:
        return _parse_tuple(kind, data, where)
    if origin is dict:
        return _parse_dict(kind, data, where)
    if dataclasses.is_dataclass(kind):
        return _parse_dataclass(kind, data, where)
    if kind is datetime:
        return _parse_time(data, where)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _parse_enum(kind, data, where)
    # bool is an int to isinstance, and a job of True nodes is not a job of one.
    if type(data) is not kind:
        raise BadMessage(f"{where}: expected {getattr(kind, '__name__', kind)}")
    return data


def _parse_optional(kind: Any, data: Any, where: str) -> Any:
    options = get_args(kind)
    if data is None:
        if type(None) in options:
            return None
        raise BadMessage(f"{where}: must not be null")
    inner = [option for option in options if option is not type(None)]
    return _parse(inner[0], data, where)


def _parse_tuple(kind: Any, data: Any, where: str) -> Any:
    if not isinstance(data, list):
        raise BadMessage(f"{where}: expected a list")
    item = get_args(kind)[0]
    return tuple(_parse(item, entry, f"{where}[{n}]") for n, entry in enumerate(data))


def _parse_dict(kind: Any, data: Any, where: str) -> Any:
    if not isinstance(data, dict):
        raise BadMessage(f"{where}: expected an object")
    _, item = get_args(kind)
    return {str(key): _parse(item, entry, f"{where}.{key}") for key, entry in data.items()}


def _parse_dataclass(kind: Any, data: Any, where: str) -> Any:
    if not isinstance(data, dict):
        raise BadMessage(f"{where}: expected an object")
    hints = _hints(kind)
    if unknown := sorted(set(data) - set(hints)):
        raise BadMessage(f"{where}: unknown field {unknown[0]}")
    required = {
        f.name
        for f in dataclasses.fields(kind)
        if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
    }
    if missing := sorted(required - set(data)):
        raise BadMessage(f"{where}: missing field {missing[0]}")
    values = {name: _parse(hints[name], data[name], f"{where}.{name}") for name in data}
    try:
        return kind(**values)
    except ValueError as error:
        raise BadMessage(f"{where}: {error}") from error


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _parse_time(data: Any, where: str) -> datetime:
    if isinstance(data, bool) or not isinstance(data, int | float):
        raise BadMessage(f"{where}: expected epoch seconds")
    try:
        return datetime.fromtimestamp(data, UTC)
    except (OverflowError, ValueError, OSError) as error:
        raise BadMessage(f"{where}: not a time") from error


def _parse_enum(kind: type[Enum], data: Any, where: str) -> Enum:
    try:
        return kind(data)
    except ValueError as error:
        raise BadMessage(f"{where}: unknown value") from error
