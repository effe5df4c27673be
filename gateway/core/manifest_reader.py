"""Typed access to a TOML document: every fault is collected, with its line where one is known."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from gateway.core.manifest import Range, Text

_Kind = TypeVar("_Kind", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong in a file of a template. `line` is None where TOML gives none."""

    line: int | None
    code: str
    text: str


class Reader:
    """Typed access to the document; collects faults instead of raising, and finds their lines."""

    def __init__(self, source: str) -> None:
        self._lines = source.split("\n")
        self.faults: list[Fault] = []
        self.table_number = 0  # which [[fields]] table is being read; 0 outside

    def fault(self, code: str, text: str, *, key: str = "", value: str = "") -> None:
        self.faults.append(Fault(self._line(key, value), code, text))

    def _line(self, key: str, value: str) -> int | None:
        heads = [n for n, line in enumerate(self._lines) if line.strip() == "[[fields]]"]
        start, end = 0, len(self._lines)
        if self.table_number and len(heads) >= self.table_number:
            start = heads[self.table_number - 1]
        elif heads and not value:
            end = heads[0]
        wanted = re.compile(rf"\s*\[*(?:\w+\.)*{re.escape(key)}(?:\s*=|\])")
        for number, line in enumerate(self._lines[start:end], start=start + 1):
            if key and wanted.match(line) and value in line:
                return number
        return start + 1 if start else None

    def known(self, table: Mapping[str, object], where: str, keys: set[str]) -> None:
        for key in table.keys() - keys:
            place = f" in [{where}]" if where else ""
            self.fault("manifest_unknown_key", f"unknown key {key!r}{place}", key=key)

    def text(
        self,
        table: Mapping[str, object],
        key: str,
        *,
        pattern: re.Pattern[str] | None = None,
        default: str | None = None,
    ) -> str:
        value = table.get(key, default)
        if not isinstance(value, str) or (not value and default is None):
            self.fault("manifest_missing", f"{key} must be a text", key=key)
            return ""
        if value and pattern is not None and not pattern.fullmatch(value):
            self.fault("manifest_value", f"{key} {value!r} is not allowed", key=key)
        return value

    def both(self, table: Mapping[str, object], key: str) -> Text:
        texts = table.get(key)
        if not isinstance(texts, dict) or set(texts) != {"en", "zh_Hans"}:
            self.fault("manifest_languages", f"{key} needs en and zh_Hans, no more", key=key)
            return Text("", "")
        return Text(self.text(texts, "en"), self.text(texts, "zh_Hans"))

    def flag(self, table: Mapping[str, object], key: str, *, default: bool) -> bool:
        value = table.get(key, default)
        if not isinstance(value, bool):
            self.fault("manifest_value", f"{key} must be true or false", key=key)
            return default
        return value

    def integer(self, table: Mapping[str, object], key: str, default: int | None) -> int | None:
        value = table.get(key, default)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
            self.fault("manifest_value", f"{key} must be a whole number", key=key)
            return default
        return value

    def scalar(self, table: Mapping[str, object], key: str) -> str:
        """A default, as the person would type it."""
        value = table.get(key, "")
        if isinstance(value, bool):
            return "true" if value else ""
        if not isinstance(value, str | int):
            self.fault("manifest_value", f"{key} must be a text, number or true", key=key)
            return ""
        return str(value)

    def range(self, table: Mapping[str, object], key: str, *, lowest: int) -> Range:
        """{ min, max, default }, or a number for a fixed one; absent: fixed at the lowest."""
        value = table.get(key, lowest)
        if isinstance(value, int) and not isinstance(value, bool):
            value = {"min": value, "max": value, "default": value}
        if not isinstance(value, dict) or set(value) != {"min", "max", "default"}:
            self.fault("manifest_range", f"{key} needs min, max and default", key=key)
            return Range(lowest, lowest, lowest)
        low, high, default = (self.integer(value, k, lowest) for k in ("min", "max", "default"))
        found = Range(low or lowest, high or lowest, lowest if default is None else default)
        if not lowest <= found.min <= found.default <= found.max:
            self.fault("manifest_range", f"{key}: {lowest} <= min <= default <= max", key=key)
        return found

    def table(self, parent: Mapping[str, object], key: str) -> Mapping[str, object]:
        value = parent.get(key, {})
        if not isinstance(value, dict):
            self.fault("manifest_value", f"{key} must be a table", key=key)
            return {}
        return value

    def tables(self, parent: Mapping[str, object], key: str) -> list[Mapping[str, object]]:
        value = parent.get(key, [])
        if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
            self.fault("manifest_value", f"{key} must be a list of tables", key=key)
            return []
        return value

    def words(self, parent: Mapping[str, object], key: str) -> list[str]:
        value = parent.get(key, [])
        if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
            self.fault("manifest_value", f"{key} must be a list of texts", key=key)
            return []
        return value

    def one_of(
        self,
        table: Mapping[str, object],
        key: str,
        kinds: type[_Kind],
        *,
        default: _Kind | None = None,
    ) -> _Kind:
        value = str(table.get(key, default))
        try:
            return kinds(value)
        except ValueError:
            known = ", ".join(kinds)
            self.fault("manifest_value", f"{key} must be one of {known}", key=key)
            return next(iter(kinds))

    def regular_expression(self, pattern: str) -> None:
        try:
            re.compile(pattern)
        except re.error as error:
            self.fault("manifest_value", f"pattern: {error}", key="pattern")
