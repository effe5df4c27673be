"""The software environments that a job may set up before its own work starts.

environments.toml holds [[environment]] tables; the portal publishes others. Each kind becomes fixed
bash lines in which every value is one quoted word.
"""

import shlex
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.core.access import Viewer
from gateway.core.answers import BadValue, clean
from gateway.core.environments import (
    NONE,
    OWN,
    OWN_TITLE,
    Environment,
    EnvironmentKind,
    faults,
    of_table,
)
from gateway.core.manifest import Field, FieldKind
from gateway.errors import BadConfiguration
from gateway.services.snapshots import as_environments
from gateway.store import environments as store
from gateway.store.uow import Begin

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

__all__ = [
    "NONE",
    "OWN_TITLE",
    "Environment",
    "EnvironmentKind",
    "load_environments",
    "offered",
    "offered_to",
    "own_venv",
    "setup_lines",
]

# More of what a person may choose: snapshots of their own, and those that were shared.
Source = Callable[[Viewer, "Session", Sequence[Environment]], Iterable[Environment]]
SOURCES: tuple[Source, ...] = (as_environments,)


def offered(
    viewer: Viewer, session: "Session", file: Sequence[Environment]
) -> tuple[Environment, ...]:
    """The one list of what this person may choose: the file's, what was published for the site and
    for their groups, and what the `SOURCES` add. A name that the file has is the file's."""
    facts = store.facts(session)
    named = {one.name for one in file}
    rows = store.published(session, viewer.groups)
    listed = [*file, *(one for one in rows if one.name not in named)]
    known = [
        replace(one, facts=one.facts.over(facts[one.name])) if one.name in facts else one
        for one in listed
    ]
    return (*known, *(one for source in SOURCES for one in source(viewer, session, known)))


def offered_to(
    viewer: Viewer, *, begin: Begin, file: Sequence[Environment]
) -> tuple[Environment, ...]:
    """`offered` in a transaction of its own."""
    with begin() as session:
        return offered(viewer, session, file)


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
        found = faults(table)
        problems += [f"environment {number}: {fault}" for fault in found]
        if not found:
            environments.append(of_table(table))
    names = [environment.name for environment in environments]
    problems += [f"name {name!r} is taken" for name in {n for n in names if names.count(n) > 1}]
    if problems:
        raise BadConfiguration(f"{path}: " + "; ".join(problems))
    return tuple(environments)


def own_venv(path: str) -> Environment:
    """A person's own virtual environment by its absolute path; raises BadValue."""
    field = Field("environment_path", FieldKind.PATH, OWN_TITLE, OWN_TITLE, required=True)
    cleaned = str(clean(field, path))
    if not cleaned.startswith("/"):
        raise BadValue("field_path_relative", field.name)
    return Environment(OWN, OWN_TITLE, EnvironmentKind.VENV, path=cleaned.rstrip("/") or "/")


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
        case EnvironmentKind.SNAPSHOT:
            return _snapshot(environment)


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


def _snapshot(environment: Environment) -> tuple[str, ...]:
    """Restored on every node of the job, to the same path on each; it needs the node kit. A
    template that sets OVERLAY has its own copy made by overlay.sh.j2."""
    document, drops = shlex.quote(environment.path), shlex.quote(" ".join(environment.drops))
    return (
        "[ -n \"$SLUICE_KIT\" ] || { echo 'a snapshot needs the node kit' >&2; exit 78; }",
        "restore_snapshot() {",
        '  PYTHONPATH="$SLUICE_KIT" "$SLUICE_PYTHON" -m sluice_train.env restore "$@" \\',
        '    --document "$SLUICE_SNAPSHOT_DOCUMENT"',
        "}",
        "export -f restore_snapshot",
        f"export SLUICE_SNAPSHOT_DOCUMENT={document}",
        f"export SLUICE_SNAPSHOT_DROP={drops}",
        'if [ -z "${OVERLAY:-}" ]; then',
        '  if [ "${SLURM_JOB_NUM_NODES:-1}" -gt 1 ]; then',
        '    SNAPSHOT=$(srun --overlap --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 \\',
        "      bash -c 'restore_snapshot --shared') || exit 78",
        '    read -r SNAPSHOT <<<"$SNAPSHOT"',
        "  else",
        "    SNAPSHOT=$(restore_snapshot) || exit 78",
        "  fi",
        "  set +u",
        "  # shellcheck disable=SC1091",
        '  . "$SNAPSHOT/bin/activate"',
        "  set -u",
        "fi",
    )
