"""An environment and the one validator of its text: environments.toml, the pages, the command and
an imported file all go through `faults` before anything is made of them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from gateway.core.env_facts import NO_FACTS, Facts, dump_facts, fact_faults, read_facts
from gateway.core.manifest import Text


class EnvironmentKind(StrEnum):
    NONE = "none"
    VENV = "venv"  # a folder with bin/activate
    CONDA = "conda"  # an installation, and one of its environments by name or path
    MODULE = "module"  # environment modules or Lmod
    PREFIX = "prefix"  # a folder whose bin/ goes first in PATH
    APPTAINER = "apptainer"  # an image; the prologue puts the program into it
    SNAPSHOT = "snapshot"  # what a person added to one of the others; never in the file


@dataclass(frozen=True, slots=True)
class Environment:
    """`group` is whose it is: empty for the site's. `published` says that it is a row and not the
    file's."""

    name: str
    title: Text
    kind: EnvironmentKind
    path: str = ""  # venv, prefix; of conda: the installation; of a snapshot: its document
    conda_env: str = ""
    modules: tuple[str, ...] = ()
    module_path: str = ""
    image: str = ""
    binds: tuple[str, ...] = ()  # /source:/place, with :ro or :rw behind it or without
    facts: Facts = NO_FACTS
    group: str = ""
    published: bool = False
    drops: tuple[str, ...] = ()  # of a snapshot: others of this person that may go


NONE = Environment("none", Text("None", "不使用"), EnvironmentKind.NONE)
OWN_TITLE = Text("My own virtual environment", "我自己的虚拟环境")
# The forms' word for a virtual environment of one's own, and no name for anything else.
OWN = "own"

LONGEST_TITLE = 120
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_PATH = re.compile(r"/[\w./+=@,:%-]+")
_WORD = re.compile(r"[\w.+/-]+")
_MODULE = re.compile(r"[\w.+/][\w.+/-]*")
# Apptainer takes a comma for the end of one bind, a colon for the end of a part.
_BIND = re.compile(r"/[\w./+=@-]*:/[\w./+=@-]*(?::r[ow])?")
_PATTERNS = {
    "name": _NAME,
    "path": _PATH,
    "module_path": _PATH,
    "conda_env": _WORD,
    "image": _PATH,
}
NEEDED = {
    EnvironmentKind.NONE: frozenset[str](),
    EnvironmentKind.VENV: frozenset({"path"}),
    EnvironmentKind.CONDA: frozenset({"path", "conda_env"}),
    EnvironmentKind.MODULE: frozenset({"modules"}),
    EnvironmentKind.PREFIX: frozenset({"path"}),
    EnvironmentKind.APPTAINER: frozenset({"image"}),
    EnvironmentKind.SNAPSHOT: frozenset({"path"}),
}
OPTIONAL = {
    EnvironmentKind.MODULE: frozenset({"module_path"}),
    EnvironmentKind.APPTAINER: frozenset({"binds"}),
}


def faults(table: object) -> list[str]:
    """What is wrong with an environment as TOML or JSON hold it; none: `of_table` takes it."""
    if not isinstance(table, dict):
        return ["not a table"]
    written = [kind for kind in EnvironmentKind if kind is not EnvironmentKind.SNAPSHOT]
    if table.get("kind") not in written:
        return [f"kind must be one of {', '.join(written)}"]
    kind = EnvironmentKind(str(table["kind"]))
    need, optional = NEEDED[kind], OPTIONAL.get(kind, frozenset())
    found = [f"{key} is missing" for key in sorted({"name", "title"} | need) if key not in table]
    unknown = table.keys() - need - optional - {"name", "kind", "title", "facts"}
    found += [f"unknown key {key!r}" for key in sorted(map(str, unknown))]
    found += _title_faults(table.get("title"))
    found += [
        f"{key} {table[key]!r} is not allowed"
        for key, pattern in _PATTERNS.items()
        if key in table and not (isinstance(table[key], str) and pattern.fullmatch(table[key]))
    ]
    if table.get("name") == OWN:
        found.append(f"name {OWN!r} is taken")
    if not _all_match(table.get("modules", []), _MODULE):
        found.append("modules must be a list of module names")
    if not _all_match(table.get("binds", []), _BIND):
        found.append("binds must be a list of /source:/place, :ro or :rw behind it")
    return found + (fact_faults(table["facts"]) if "facts" in table else [])


def of_table(table: Mapping[str, object]) -> Environment:
    """The environment of a table that `faults` has found nothing wrong with."""
    title, facts = table["title"], table.get("facts", {})
    modules, binds = table.get("modules", []), table.get("binds", [])
    assert isinstance(title, dict)
    assert isinstance(facts, dict)
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
        facts=read_facts(facts),
    )


def to_table(environment: Environment) -> dict[str, object]:
    """As `of_table` takes it, without what it does not have."""
    whole: dict[str, object] = {
        "path": environment.path,
        "conda_env": environment.conda_env,
        "modules": list(environment.modules),
        "module_path": environment.module_path,
        "image": environment.image,
        "binds": list(environment.binds),
        "facts": dump_facts(environment.facts),
    }
    return {
        "name": environment.name,
        "kind": environment.kind.value,
        "title": {"en": environment.title.en, "zh_Hans": environment.title.zh_Hans},
        **{key: value for key, value in whole.items() if value},
    }


def _title_faults(title: object) -> list[str]:
    if not isinstance(title, dict) or set(title) != {"en", "zh_Hans"}:
        return ["title needs en and zh_Hans, no more"]
    good = all(
        isinstance(text, str) and 0 < len(text.strip()) <= LONGEST_TITLE and text.isprintable()
        for text in title.values()
    )
    return [] if good else [f"title: 1 to {LONGEST_TITLE} characters that can be printed"]


def _all_match(words: object, pattern: re.Pattern[str]) -> bool:
    return isinstance(words, list) and all(
        isinstance(word, str) and pattern.fullmatch(word) for word in words
    )
