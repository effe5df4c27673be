"""manifest.toml, read strictly: an unknown word is a fault, and every fault names its line."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from gateway.core.manifest import (
    RESERVED,
    BadValue,
    Choice,
    Field,
    FieldKind,
    GpuRule,
    Manifest,
    Range,
    Resources,
    SbatchOptions,
    Text,
    clean,
)
from gateway.errors import GatewayError

_FIELD_NAME = re.compile(r"[a-z][a-z0-9_]{0,30}")
_TEMPLATE_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,30}")
_SIGNAL = re.compile(r"B:(?:USR1|USR2|TERM)@[1-9][0-9]{0,4}")
_Kind = TypeVar("_Kind", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong in a file of a template. `line` is None where TOML gives none."""

    line: int | None
    code: str
    text: str


class BadManifest(GatewayError):
    """The manifest cannot be used; every fault is listed."""

    code = "bad_manifest"

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        super().__init__("; ".join(fault.text for fault in faults))
        self.faults = faults


def parse_manifest(text: str) -> Manifest:
    """Read a manifest; raises BadManifest with every fault and its line where one is known."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"at line (\d+)", str(error))
        line = int(place[1]) if place else None
        raise BadManifest((Fault(line, "manifest_syntax", str(error)),)) from error
    reader = _Reader(text)
    manifest = _manifest(reader, document)
    if reader.faults:
        raise BadManifest(tuple(reader.faults))
    return manifest


def _manifest(read: "_Reader", document: Mapping[str, object]) -> Manifest:
    read.known(document, "", {"name", "title", "summary", "resources", "sbatch", "fields"})
    fields = tuple(
        _field(read, table, number)
        for number, table in enumerate(read.tables(document, "fields"), start=1)
    )
    names = [field.name for field in fields]
    for name in sorted({name for name in names if names.count(name) > 1 or name in RESERVED}):
        read.fault("field_name_taken", f"field name {name!r} is taken", key="name", value=name)
    return Manifest(
        name=read.text(document, "name", pattern=_TEMPLATE_NAME),
        title=read.both(document, "title"),
        summary=read.both(document, "summary"),
        resources=_resources(read, read.table(document, "resources")),
        sbatch=_sbatch(read, read.table(document, "sbatch")),
        fields=fields,
    )


def _resources(read: "_Reader", table: Mapping[str, object]) -> Resources:
    read.known(
        table,
        "resources",
        {"nodes", "nproc_per_node", "gpus", "gpus_per_node", "cpus_per_process"},
    )
    return Resources(
        nodes=read.range(table, "nodes", lowest=1),
        nproc_per_node=read.range(table, "nproc_per_node", lowest=1),
        gpus=read.one_of(table, "gpus", GpuRule),
        gpus_per_node=read.range(table, "gpus_per_node", lowest=0),
        cpus_per_process=read.integer(table, "cpus_per_process", 1) or 1,
    )


def _sbatch(read: "_Reader", table: Mapping[str, object]) -> SbatchOptions:
    read.known(table, "sbatch", {"requeue", "append_output", "signal"})
    signal = read.text(table, "signal", pattern=_SIGNAL, default="") or None
    return SbatchOptions(
        requeue=read.flag(table, "requeue", default=True),
        append_output=read.flag(table, "append_output", default=True),
        signal=signal,
    )


_FIELD_KEYS = {
    "name",
    "kind",
    "label",
    "help",
    "default",
    "required",
    "min",
    "max",
    "choices",
    "pattern",
    "placeholder",
}


def _field(read: "_Reader", table: Mapping[str, object], number: int) -> Field:
    read.table_number = number
    read.known(table, "fields", _FIELD_KEYS)
    kind = read.one_of(table, "kind", FieldKind)
    choices = tuple(_choice(read, entry) for entry in read.tables(table, "choices"))
    if (kind is FieldKind.CHOICE) != bool(choices):
        read.fault("field_choices", "a choice field, and no other, lists its choices", key="kind")
    pattern = read.text(table, "pattern", default="") or None
    if pattern is not None:
        read.regular_expression(pattern)
    field = Field(
        name=read.text(table, "name", pattern=_FIELD_NAME),
        kind=kind,
        label=read.both(table, "label"),
        help=read.both(table, "help"),
        default=read.scalar(table, "default"),
        required=read.flag(table, "required", default=False),
        min=read.integer(table, "min", None),
        max=read.integer(table, "max", None),
        choices=choices,
        pattern=pattern,
        placeholder=read.text(table, "placeholder", default=""),
    )
    _check_default(read, field)
    read.table_number = 0
    return field


def _check_default(read: "_Reader", field: Field) -> None:
    if not field.default:
        return
    try:
        clean(field, field.default)
    except BadValue as bad:
        read.fault("manifest_default", f"the default is refused: {bad.code}", key="default")


def _choice(read: "_Reader", table: Mapping[str, object]) -> Choice:
    read.known(table, "choices", {"value", "label"})
    return Choice(read.text(table, "value"), read.both(table, "label"))


class _Reader:
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

    def one_of(self, table: Mapping[str, object], key: str, kinds: type[_Kind]) -> _Kind:
        value = str(table.get(key))
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
