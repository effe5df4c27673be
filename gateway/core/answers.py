"""How a typed answer becomes a value that the script may hold.

Allow-list and refuse: a value is never escaped into fitness. What passes is still quoted when the
script is rendered.
"""

import re
import shlex
import unicodedata
from collections.abc import Mapping
from decimal import Decimal

from gateway.core.manifest import Field, FieldKind, Manifest
from gateway.core.tables import BadTable, read_table
from gateway.errors import Refused

# A table is a tuple of rows, each a tuple of words; words are a tuple.
Value = str | int | bool | tuple[str, ...] | tuple[tuple[str, ...], ...] | None

LONGEST_LINE = 4096
LONGEST_TABLE = 2**18
MOST_ROWS = 1000  # Slurm's own MaxArraySize is 1001, and counts from 0
_PATH = re.compile(r"[\w./+=@,:%-]+")
# No colon: it stands between folders in a variable. No comma: Apptainer ends a bind at it.
_FOLDER = re.compile(r"[\w./+=@%-]+")
_DATASET = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}(?:@[1-9][0-9]{0,8})?", re.ASCII)
_TEXT = re.compile(r"[\w./+=@,:% -]+")
_INTEGER = re.compile(r"-?[0-9]{1,12}", re.ASCII)
_HOURS = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,6})?", re.ASCII)
_ENVIRONMENT = re.compile(r"(?:snapshot:)?[a-z0-9][a-z0-9._-]{0,63}", re.ASCII)
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


class BadValue(Refused):
    """A typed value that a field does not take. `code` is a message key, `field` its name."""

    def __init__(self, code: str, field: str, **facts: str | int) -> None:
        super().__init__(code, field=field, **facts)


def clean_all(
    manifest: Manifest, raw: Mapping[str, str | bool | None]
) -> tuple[dict[str, Value], tuple[BadValue, ...]]:
    """Every field's value, and every refusal. An optional field that `raw` lacks has its default,
    but for a tick: a form sends none that is not set."""
    values: dict[str, Value] = {}
    refused = []
    for field in manifest.fields:
        has_default = not field.required and field.kind is not FieldKind.BOOL
        absent = field.default if has_default else None
        try:
            values[field.name] = clean(field, raw.get(field.name, absent))
        except BadValue as bad:
            refused.append(bad)
    return values, tuple(refused)


def clean(field: Field, raw: str | bool | None) -> Value:
    """The typed value of what a person gave; raises BadValue.

    Left empty: "" for a text, path, choice or environment, () for words, folders and tables; for
    a number its default, or None where it has none.
    """
    if field.kind is FieldKind.BOOL:
        return _flag(field, raw)
    typed = raw if isinstance(raw, str) else ""
    if field.kind is FieldKind.TABLE:
        return _table(field, typed.strip())
    _refuse_characters(field, typed)
    typed = typed.strip()
    if not typed and field.required:
        raise BadValue("field_required", field.name)
    match field.kind:
        case FieldKind.ARGUMENTS | FieldKind.COMMAND:
            return _words(field, typed)
        case FieldKind.INTEGER:
            return _integer(field, typed or field.default)
        case FieldKind.HOURS:
            return _hours(field, typed or field.default)
        case FieldKind.PATH:
            return _path(field, typed) if typed else ""
        case FieldKind.PATHS:
            return tuple(_folder(field, word) for word in typed.split())
        case FieldKind.DATASETS:
            return tuple(_dataset(field, word) for word in typed.split())
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
    if len(typed) > LONGEST_LINE:
        raise BadValue("field_too_long", field.name, max=LONGEST_LINE)
    for place, character in enumerate(typed, start=1):
        if unicodedata.category(character) in _INVISIBLE:
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


def _integer(field: Field, typed: str) -> int | None:
    if not typed:
        return None
    if not _INTEGER.fullmatch(typed):
        raise BadValue("field_integer", field.name)
    return int(_in_range(field, Decimal(typed)))


def _hours(field: Field, typed: str) -> int | None:
    if not typed:
        return None
    if not _HOURS.fullmatch(typed):
        raise BadValue("field_hours", field.name)
    return round(_in_range(field, Decimal(typed)) * 3600)


def _in_range(field: Field, number: Decimal) -> Decimal:
    if field.min is not None and number < field.min:
        raise BadValue("field_too_small", field.name, min=field.min)
    if field.max is not None and number > field.max:
        raise BadValue("field_too_large", field.name, max=field.max)
    return number


def _table(field: Field, typed: str) -> tuple[tuple[str, ...], ...]:
    """Each row as words for a program: `--name=value`."""
    if not typed and field.required:
        raise BadValue("field_required", field.name)
    if len(typed) > LONGEST_TABLE:
        raise BadValue("field_too_long", field.name, max=LONGEST_TABLE)
    try:
        table = read_table(typed, most_rows=field.max or MOST_ROWS)
    except BadTable as bad:
        raise BadValue(bad.code, field.name, **bad.facts) from bad
    for row in table.rows:
        for value in row:
            _refuse_characters(field, value)
    return tuple(
        tuple(f"--{name}={value}" for name, value in zip(table.names, row, strict=True))
        for row in table.rows
    )


def _folder(field: Field, typed: str) -> str:
    _path(field, typed)
    if not typed.startswith("/"):
        raise BadValue("field_path_relative", field.name)
    return _matching(field, typed, _FOLDER, "field_characters")


def _dataset(field: Field, typed: str) -> str:
    """A word of the catalogue, or a folder."""
    return typed if _DATASET.fullmatch(typed) else _folder(field, typed)


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
