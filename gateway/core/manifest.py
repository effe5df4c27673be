"""What a template asks for and offers, and how a typed value becomes one the script may hold.

Allow-list and refuse: a value is never escaped into fitness. What passes is still quoted when the
script is rendered.
"""

import re
import shlex
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from gateway.errors import Refused

# What every script has besides its own fields, and words of the template language.
CONTEXT = frozenset({"nodes", "nproc_per_node", "gpus_per_node", "cpus_per_task", "setup"})
RESERVED = CONTEXT | {
    "true",
    "false",
    "none",
    "and",
    "or",
    "not",
    "if",
    "else",
    "in",
    "is",
    "loop",
    "self",
}

Value = str | int | bool | tuple[str, ...] | None

_LONGEST_LINE = 4096
_PATH = re.compile(r"[\w./+=@,:%-]+")
_TEXT = re.compile(r"[\w./+=@,:% -]+")
_INTEGER = re.compile(r"-?[0-9]{1,12}", re.ASCII)
_ENVIRONMENT = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Text:
    """A text of the template's author in both languages. Never HTML."""

    en: str
    zh_Hans: str  # as Babel names the locale

    def get(self, locale: str) -> str:
        return self.zh_Hans if locale.startswith("zh") else self.en


class FieldKind(StrEnum):
    PATH = "path"  # a file: relative to the working folder, or absolute
    ARGUMENTS = "arguments"  # words for a program, split like a shell does, with no other meaning
    COMMAND = "command"  # the same, and the first word is the program
    INTEGER = "integer"
    CHOICE = "choice"
    TEXT = "text"  # letters, digits and . _ - + : / @ , = % and spaces, or the field's own pattern
    BOOL = "bool"
    ENVIRONMENT = "environment"  # the name of one of the site's environments


class GpuRule(StrEnum):
    PER_PROCESS = "per_process"  # gpus_per_node is nproc_per_node
    CHOSEN = "chosen"  # a field of its own, with a range
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Range:
    min: int
    max: int
    default: int

    @property
    def is_fixed(self) -> bool:
        return self.min == self.max


@dataclass(frozen=True, slots=True)
class Resources:
    """Which numbers the form offers; a fixed range is not shown."""

    nodes: Range
    nproc_per_node: Range
    gpus: GpuRule
    gpus_per_node: Range
    cpus_per_process: int

    def gpus_for(self, nproc_per_node: int, chosen: int) -> int:
        """GPUs of each node; `chosen` counts only where the person may choose."""
        if self.gpus is GpuRule.PER_PROCESS:
            return nproc_per_node
        return chosen if self.gpus is GpuRule.CHOSEN else 0

    def cpus_for(self, nproc_per_node: int) -> int:
        """CPUs of the one task on each node, for all its processes."""
        return self.cpus_per_process * nproc_per_node


@dataclass(frozen=True, slots=True)
class SbatchOptions:
    requeue: bool = True
    append_output: bool = True
    signal: str | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    value: str
    label: Text


@dataclass(frozen=True, slots=True)
class Field:
    """One question of the form, and one variable of the script."""

    name: str
    kind: FieldKind
    label: Text
    help: Text
    default: str = ""
    required: bool = False
    min: int | None = None
    max: int | None = None
    choices: tuple[Choice, ...] = ()
    pattern: str | None = None
    placeholder: str = ""


@dataclass(frozen=True, slots=True)
class Manifest:
    name: str
    title: Text
    summary: Text
    resources: Resources
    sbatch: SbatchOptions
    fields: tuple[Field, ...]

    def field(self, name: str) -> Field:
        return next(field for field in self.fields if field.name == name)


class BadValue(Refused):
    """A typed value that a field does not take. `code` is a message key, `field` its name."""

    def __init__(self, code: str, field: str, **facts: str | int) -> None:
        super().__init__(code, field=field, **facts)


def clean_all(
    manifest: Manifest, raw: Mapping[str, str | bool | None]
) -> tuple[dict[str, Value], tuple[BadValue, ...]]:
    """Every field's value, and every refusal. A field that `raw` lacks counts as left empty."""
    values: dict[str, Value] = {}
    refused = []
    for field in manifest.fields:
        try:
            values[field.name] = clean(field, raw.get(field.name))
        except BadValue as bad:
            refused.append(bad)
    return values, tuple(refused)


def clean(field: Field, raw: str | bool | None) -> Value:
    """The typed value of what a person gave; raises BadValue.

    Left empty: "" for a text, path, choice or environment, () for words, None for a number.
    """
    if field.kind is FieldKind.BOOL:
        return _flag(field, raw)
    typed = raw if isinstance(raw, str) else ""
    _refuse_characters(field, typed)
    typed = typed.strip()
    if not typed and field.required:
        raise BadValue("field_required", field.name)
    match field.kind:
        case FieldKind.ARGUMENTS | FieldKind.COMMAND:
            return _words(field, typed)
        case FieldKind.INTEGER:
            return _integer(field, typed) if typed else None
        case FieldKind.PATH:
            return _path(field, typed) if typed else ""
        case FieldKind.TEXT:
            return _text(field, typed) if typed else ""
        case FieldKind.CHOICE:
            return _choice(field, typed) if typed else ""
        case FieldKind.ENVIRONMENT:
            return _matching(field, typed, _ENVIRONMENT, "field_characters") if typed else ""


def _flag(field: Field, raw: str | bool | None) -> bool:
    if raw in {True, "true", "on", "yes", "1", "y"}:
        return True
    if raw in {False, None, "", "false", "off", "no", "0"}:
        return False
    raise BadValue("field_flag", field.name)


def _refuse_characters(field: Field, typed: str) -> None:
    """One line of what can be seen: no controls, line or paragraph separators, invisible marks."""
    if len(typed) > _LONGEST_LINE:
        raise BadValue("field_too_long", field.name, max=_LONGEST_LINE)
    for place, character in enumerate(typed, start=1):
        if unicodedata.category(character) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}:
            code = f"U+{ord(character):04X}"
            raise BadValue("field_control_character", field.name, place=place, character=code)


def _words(field: Field, typed: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(typed))
    except ValueError as error:
        raise BadValue("field_quotes", field.name) from error
    if field.kind is FieldKind.COMMAND and words and not words[0].strip():
        raise BadValue("field_no_program", field.name)
    if field.kind is FieldKind.COMMAND and words and words[0].startswith("-"):
        raise BadValue("field_leading_dash", field.name)
    return words


def _integer(field: Field, typed: str) -> int:
    if not _INTEGER.fullmatch(typed):
        raise BadValue("field_integer", field.name)
    number = int(typed)
    if field.min is not None and number < field.min:
        raise BadValue("field_too_small", field.name, min=field.min)
    if field.max is not None and number > field.max:
        raise BadValue("field_too_large", field.name, max=field.max)
    return number


def _path(field: Field, typed: str) -> str:
    if typed.startswith("-"):
        raise BadValue("field_leading_dash", field.name)
    if typed.startswith("~"):
        raise BadValue("field_path_home", field.name)  # nothing expands it: it is quoted
    if ".." in typed.split("/"):
        raise BadValue("field_path_parent", field.name)
    return _matching(field, typed, _PATH, "field_characters")


def _text(field: Field, typed: str) -> str:
    if field.max is not None and len(typed) > field.max:
        raise BadValue("field_too_long", field.name, max=field.max)
    own = re.compile(field.pattern) if field.pattern else _TEXT
    return _matching(field, typed, own, "field_pattern" if field.pattern else "field_characters")


def _choice(field: Field, typed: str) -> str:
    if typed not in {choice.value for choice in field.choices}:
        raise BadValue("field_choice", field.name)
    return typed


def _matching(field: Field, typed: str, allowed: re.Pattern[str], code: str) -> str:
    if not allowed.fullmatch(typed):
        bad = next((c for c in typed if not allowed.fullmatch(c)), "")
        raise BadValue(code, field.name, character=bad)
    return typed
