"""The site's software environments: what a job may set up before its own work starts.

environments.toml holds [[environment]] tables. Each kind becomes fixed bash lines in which every
value of the file is one quoted word.
"""

import re
import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from gateway.core.answers import BadValue, clean
from gateway.core.manifest import Field, FieldKind, Text
from gateway.errors import BadConfiguration


class EnvironmentKind(StrEnum):
    NONE = "none"
    VENV = "venv"  # a folder with bin/activate
    CONDA = "conda"  # an installation, and one of its environments by name or path
    MODULE = "module"  # environment modules or Lmod
    PREFIX = "prefix"  # a folder whose bin/ goes first in PATH
    APPTAINER = "apptainer"  # an image; the prologue puts the program into it


@dataclass(frozen=True, slots=True)
class Environment:
    name: str
    title: Text
    kind: EnvironmentKind
    path: str = ""  # venv, prefix; of conda: the installation
    conda_env: str = ""
    modules: tuple[str, ...] = ()
    module_path: str = ""
    image: str = ""
    binds: tuple[str, ...] = ()  # /source:/place, with :ro or :rw behind it or without


NONE = Environment("none", Text("None", "不使用"), EnvironmentKind.NONE)
OWN_TITLE = Text("My own virtual environment", "我自己的虚拟环境")

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_PATH = re.compile(r"/[\w./+=@,:%-]+")
_WORD = re.compile(r"[\w.+/-]+")
_MODULE = re.compile(r"[\w.+/][\w.+/-]*")
# Apptainer takes a comma for the end of one bind, a colon for the end of a part.
_BIND = re.compile(r"/[\w./+=@-]*:/[\w./+=@-]*(?::r[ow])?")
_KEYS = {
    EnvironmentKind.NONE: set[str](),
    EnvironmentKind.VENV: {"path"},
    EnvironmentKind.CONDA: {"path", "conda_env"},
    EnvironmentKind.MODULE: {"modules"},
    EnvironmentKind.PREFIX: {"path"},
    EnvironmentKind.APPTAINER: {"image"},
}
_OPTIONAL = {EnvironmentKind.MODULE: {"module_path"}, EnvironmentKind.APPTAINER: {"binds"}}


def load_environments(path: Path) -> tuple[Environment, ...]:
    """The site's list; "none" is always there and first. BadConfiguration lists every problem."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return (NONE,)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadConfiguration(f"{path}: {error}") from error
    tables = document.get("environment", [])
    problems = [f"unknown key {key!r}" for key in document if key != "environment"]
    environments = [NONE]
    for number, table in enumerate(tables if isinstance(tables, list) else [], start=1):
        found = _faults(table)
        problems += [f"environment {number}: {fault}" for fault in found]
        if not found:
            environments.append(_environment(table))
    names = [environment.name for environment in environments]
    problems += [f"name {name!r} is taken" for name in {n for n in names if names.count(n) > 1}]
    if problems:
        raise BadConfiguration(f"{path}: " + "; ".join(problems))
    return tuple(environments)


def _faults(table: object) -> list[str]:
    if not isinstance(table, dict):
        return ["not a table"]
    try:
        kind = EnvironmentKind(str(table.get("kind")))
    except ValueError:
        return [f"kind must be one of {', '.join(EnvironmentKind)}"]
    need = _KEYS[kind]
    optional = _OPTIONAL.get(kind, set())
    faults = [f"{key} is missing" for key in sorted({"name", "title"} | need) if key not in table]
    unknown = table.keys() - need - optional - {"name", "kind", "title"}
    faults += [f"unknown key {key!r}" for key in sorted(unknown)]
    title = table.get("title")
    if not isinstance(title, dict) or set(title) != {"en", "zh_Hans"}:
        faults.append("title needs en and zh_Hans, no more")
    patterns = {
        "name": _NAME,
        "path": _PATH,
        "module_path": _PATH,
        "conda_env": _WORD,
        "image": _PATH,
    }
    faults += [
        f"{key} {table[key]!r} is not allowed"
        for key, pattern in patterns.items()
        if key in table and not (isinstance(table[key], str) and pattern.fullmatch(table[key]))
    ]
    if not _all_match(table.get("modules", []), _MODULE):
        faults.append("modules must be a list of module names")
    if not _all_match(table.get("binds", []), _BIND):
        faults.append("binds must be a list of /source:/place, :ro or :rw behind it")
    return faults


def _all_match(words: object, pattern: re.Pattern[str]) -> bool:
    return isinstance(words, list) and all(
        isinstance(word, str) and pattern.fullmatch(word) for word in words
    )


def _environment(table: Mapping[str, object]) -> Environment:
    title = table["title"]
    modules, binds = table.get("modules", []), table.get("binds", [])
    assert isinstance(title, dict)  # _faults has looked
    assert isinstance(modules, list)
    assert isinstance(binds, list)
    return Environment(
        name=str(table["name"]),
        title=Text(str(title["en"]), str(title["zh_Hans"])),
        kind=EnvironmentKind(str(table["kind"])),
        path=str(table.get("path", "")),
        conda_env=str(table.get("conda_env", "")),
        modules=tuple(str(module) for module in modules),
        module_path=str(table.get("module_path", "")),
        image=str(table.get("image", "")),
        binds=tuple(str(bind) for bind in binds),
    )


def own_venv(path: str) -> Environment:
    """A person's own virtual environment by its absolute path; raises BadValue."""
    field = Field("environment_path", FieldKind.PATH, OWN_TITLE, OWN_TITLE, required=True)
    cleaned = str(clean(field, path))
    if not cleaned.startswith("/"):
        raise BadValue("field_path_relative", field.name)
    return Environment("own", OWN_TITLE, EnvironmentKind.VENV, path=cleaned.rstrip("/") or "/")


def setup_lines(environment: Environment | None) -> tuple[str, ...]:
    """Bash lines that set the environment up, or end the job with a sentence in its log.

    Activation scripts read unset variables, hence +u around them.
    """
    if environment is None:
        return ()
    match environment.kind:
        case EnvironmentKind.NONE:
            return ()
        case EnvironmentKind.VENV:
            return _guarded(f"{environment.path}/bin/activate", ())
        case EnvironmentKind.CONDA:
            hook = f"{environment.path}/etc/profile.d/conda.sh"
            activate = f"conda activate {shlex.quote(environment.conda_env)} || exit 78"
            return _guarded(hook, (activate,))
        case EnvironmentKind.MODULE:
            return _modules(environment)
        case EnvironmentKind.PREFIX:
            folder = shlex.quote(f"{environment.path}/bin")
            return (_exists("-d", f"{environment.path}/bin"), f"export PATH={folder}:$PATH")
        case EnvironmentKind.APPTAINER:
            return _image(environment)


def _guarded(script: str, after: tuple[str, ...]) -> tuple[str, ...]:
    return (
        _exists("-r", script),
        "set +u",
        "# shellcheck disable=SC1090,SC1091",
        f". {shlex.quote(script)}",
        *after,
        "set -u",
    )


def _exists(test: str, path: str) -> str:
    quoted = shlex.quote(path)
    words = f"printf '%s: environment not found on %s\\n' {quoted} \"$HOSTNAME\" >&2"
    return f"[ {test} {quoted} ] || {{ {words}; exit 78; }}"


def _modules(environment: Environment) -> tuple[str, ...]:
    names = " ".join(shlex.quote(module) for module in environment.modules)
    use = f"module use {shlex.quote(environment.module_path)}"
    return (
        "set +u",
        "# A batch shell is no login shell: the module function may not be there yet.",
        "for hook in /etc/profile.d/modules.sh /etc/profile.d/lmod.sh; do",
        "  # shellcheck disable=SC1090",
        '  if ! command -v module >/dev/null && [ -r "$hook" ]; then . "$hook"; fi',
        "done",
        *([use] if environment.module_path else []),
        f"module load {names} || exit 78",
        "set -u",
    )


def _image(environment: Environment) -> tuple[str, ...]:
    """IMAGE and BINDS: the prologue makes the words that enter the image of them."""
    missing = "printf 'apptainer: not found on %s\\n' \"$HOSTNAME\" >&2"
    return (
        f"command -v apptainer >/dev/null || {{ {missing}; exit 78; }}",
        _exists("-r", environment.image),
        f"IMAGE={shlex.quote(environment.image)}",
        f"BINDS=({' '.join(shlex.quote(bind) for bind in environment.binds)})",
    )
