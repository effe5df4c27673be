"""Strict JSON for frozen dataclasses: what is unknown, missing or mistyped is refused.

A queue of 100,000 jobs goes through here at each poll, so each class is looked at once and
becomes a function; places in a message are spelled out only when something is wrong.
"""

import dataclasses
import types
from collections.abc import Callable
from datetime import UTC, datetime
from enum import Enum
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from gateway.errors import BadMessage

T = TypeVar("T")
Parser = Callable[[Any], Any]
_PLAIN = frozenset({str, int, bool, float, types.NoneType})


def dump(value: Any) -> Any:
    """Turn a message into what `json.dumps` takes. Times become whole or broken epoch seconds."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if isinstance(value, datetime):
        return value.timestamp()
    if isinstance(value, tuple):
        return [dump(item) for item in value]
    if dataclasses.is_dataclass(kind):
        return {name: dump(getattr(value, name)) for name in _field_names(kind)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, dict):
        return {key: dump(item) for key, item in value.items()}
    return value


def parse(kind: type[T], data: Any) -> T:
    """Build a `kind` from parsed JSON, or raise BadMessage naming the field."""
    hashable: Any = kind
    try:
        parsed: T = _parser(hashable)(data)
    except _Wrong as wrong:
        raise BadMessage(f"{kind.__name__}{wrong.place}: {wrong.text}") from wrong
    return parsed


class _Wrong(Exception):
    """Something is wrong at `place`, which grows from the inside out."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text
        self.place = ""

    def inside(self, step: str) -> "_Wrong":
        self.place = step + self.place
        return self


@cache
def _field_names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


@cache
def _parser(kind: Any) -> Parser:
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _optional(kind)
    if origin is tuple:
        return _tuple(_parser(get_args(kind)[0]))
    if origin is dict:
        return _dict(_parser(get_args(kind)[1]))
    if dataclasses.is_dataclass(kind):
        return _dataclass(kind)
    if kind is datetime:
        return _time
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _enum(kind)
    return _plain(kind)


def _plain(kind: Any) -> Parser:
    def parse_plain(data: Any) -> Any:
        # bool is an int to isinstance, and a job of True nodes is not a job of one.
        if type(data) is not kind:
            raise _Wrong(f"expected {getattr(kind, '__name__', kind)}")
        return data

    return parse_plain


def _optional(kind: Any) -> Parser:
    options = get_args(kind)
    nullable = type(None) in options
    inner = _parser(next(option for option in options if option is not type(None)))

    def parse_optional(data: Any) -> Any:
        if data is not None:
            return inner(data)
        if nullable:
            return None
        raise _Wrong("must not be null")

    return parse_optional


def _tuple(item: Parser) -> Parser:
    def parse_tuple(data: Any) -> Any:
        if not isinstance(data, list):
            raise _Wrong("expected a list")
        parsed: list[Any] = []
        try:
            for entry in data:
                parsed.append(item(entry))  # the length tells where it broke
        except _Wrong as wrong:
            raise wrong.inside(f"[{len(parsed)}]") from wrong.__cause__
        return tuple(parsed)

    return parse_tuple


def _dict(item: Parser) -> Parser:
    def parse_dict(data: Any) -> Any:
        if not isinstance(data, dict):
            raise _Wrong("expected an object")
        return {str(key): _at(item, entry, str(key)) for key, entry in data.items()}

    return parse_dict


def _dataclass(kind: Any) -> Parser:
    hints = get_type_hints(kind)
    parsers = {name: _parser(hint) for name, hint in hints.items()}
    required = {
        f.name
        for f in dataclasses.fields(kind)
        if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
    }

    def parse_dataclass(data: Any) -> Any:
        if not isinstance(data, dict):
            raise _Wrong("expected an object")
        if unknown := data.keys() - parsers.keys():
            raise _Wrong(f"unknown field {min(unknown)}")
        if missing := required - data.keys():
            raise _Wrong(f"missing field {min(missing)}")
        values: dict[str, Any] = {}
        name = ""
        try:
            for name, entry in data.items():
                values[name] = parsers[name](entry)
        except _Wrong as wrong:
            raise wrong.inside(f".{name}") from wrong.__cause__
        try:
            return kind(**values)
        except ValueError as error:
            raise _Wrong(str(error)) from error

    return parse_dataclass


def _at(item: Parser, entry: Any, name: str) -> Any:
    try:
        return item(entry)
    except _Wrong as wrong:
        raise wrong.inside(f".{name}") from wrong.__cause__


def _time(data: Any) -> datetime:
    if isinstance(data, bool) or not isinstance(data, int | float):
        raise _Wrong("expected epoch seconds")
    try:
        return datetime.fromtimestamp(data, UTC)
    except (OverflowError, ValueError, OSError) as error:
        raise _Wrong("not a time") from error


def _enum(kind: type[Enum]) -> Parser:
    def parse_enum(data: Any) -> Enum:
        try:
            return kind(data)
        except ValueError as error:
            raise _Wrong("unknown value") from error

    return parse_enum
