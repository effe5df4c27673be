"""Single fields of the form as typed: the value, or the problem at the field."""

import re

from gateway.core.ask import FieldProblem
from gateway.core.manifest import Range
from gateway.core.sbatch import valid_name

_LONGEST_NAME = 64
_LONGEST_FOLDER = 1024
_FOLDER = re.compile(r"[\w./+=@,:~-]+")
_INTEGER = re.compile(r"\d{1,6}", re.ASCII)


def number(field: str, typed: str, allowed: Range) -> int | FieldProblem:
    """A whole number in the template's range; a fixed range is not shown, nor read."""
    if allowed.is_fixed:
        return allowed.default
    text = typed.strip()
    if not text:
        return FieldProblem(field, "required", nearest=str(allowed.default))
    if not _INTEGER.fullmatch(text):
        return FieldProblem(field, "not_an_integer", nearest=str(allowed.default))
    value = int(text)
    if value < allowed.min:
        return FieldProblem(field, "too_small", {"min": allowed.min}, str(allowed.min))
    if value > allowed.max:
        return FieldProblem(field, "too_big", {"max": allowed.max}, str(allowed.max))
    return value


def job_name(typed: str) -> str | FieldProblem:
    """A name of letters, digits and . _ - +, since it goes into a directive and a file name."""
    name = typed.strip(" ")
    if not name:
        return FieldProblem("name", "required")
    if len(name) > _LONGEST_NAME:
        return FieldProblem("name", "name_too_long", {"max": _LONGEST_NAME})
    if valid_name(name) is None:
        nearest = "".join(c if valid_name(f"a{c}") else "-" for c in name).strip("-.+")
        return FieldProblem("name", "name_characters", nearest=nearest or None)
    return name


def folder(typed: str) -> str | FieldProblem:
    """An absolute path, or one that begins at the person's home (~)."""
    field, path = "working_directory", typed.strip(" ")
    if not path:
        return FieldProblem(field, "required", nearest="~")
    if len(path.encode("utf-8", "surrogatepass")) > _LONGEST_FOLDER:
        return FieldProblem(field, "folder_too_long", {"max": _LONGEST_FOLDER})
    for character in path:
        if not _FOLDER.fullmatch(character):
            shown = character if character.isprintable() else f"U+{ord(character):04X}"
            return FieldProblem(field, "folder_characters", {"character": shown})
    if not (path.startswith(("/", "~/")) or path == "~"):
        return FieldProblem(field, "folder_not_absolute", nearest=f"~/{path}")
    if ".." in path.split("/") or "~" in path[1:]:
        return FieldProblem(field, "folder_parent")
    return path
