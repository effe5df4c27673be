"""A template read from its folder, with every fault that can be found without running it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from jinja2 import Template as Program
from jinja2.sandbox import SandboxedEnvironment

from gateway.config import NODE_KIT
from gateway.core.manifest import Field, FieldKind, Manifest
from gateway.core.manifest_file import BadManifest, parse_field_set, parse_manifest
from gateway.core.manifest_reader import Fault
from gateway.services.template_language import language
from gateway.services.template_lint import includes, lint, variables

MANIFEST = "manifest.toml"
SCRIPT = "script.sbatch.j2"
SHARED = "_shared"


@dataclass(frozen=True, slots=True)
class Problem:
    """A fault of a template's file. `text` is for the command line, `code` for tests and pages."""

    path: Path
    line: int
    code: str
    text: str


@dataclass(frozen=True, slots=True)
class Template:
    """A template that passed every check that needs no other program. `kit` is the folder of the
    node tools on this site's nodes, empty where there is none."""

    name: str
    manifest: Manifest
    folder: Path
    source: str
    program: Program = field(repr=False, compare=False)
    kit: str = NODE_KIT
    local: str = ""  # a folder on the nodes' own disks
    area: str = ""  # where snapshots are kept; empty: at home


@dataclass(frozen=True, slots=True)
class Shared:
    """What every template may use: files to include, by the name they are included by, and sets
    of fields by theirs."""

    scripts: Mapping[str, Path]
    field_sets: Mapping[str, tuple[Field, ...]]
    problems: tuple[Problem, ...] = ()


def read_shared(folders: tuple[Path, ...]) -> Shared:
    """A later folder's file hides an earlier one of its name."""
    problems: list[Problem] = []
    scripts, sets = _shared_files(folders, ".j2"), _shared_files(folders, ".toml")
    field_sets = {path.stem: _read_fields(path, problems) for path in sets.values()}
    return Shared(scripts, field_sets, tuple(problems))


def _shared_files(folders: tuple[Path, ...], ending: str) -> dict[str, Path]:
    return {
        f"{SHARED}/{path.name}": path
        for folder in folders
        for path in sorted((folder / SHARED).glob(f"*{ending}"))
    }


def _read_fields(path: Path, problems: list[Problem]) -> tuple[Field, ...]:
    text = _read(path, problems)
    try:
        return parse_field_set(text) if text is not None else ()
    except BadManifest as bad:
        problems += [_problem(path, fault) for fault in bad.faults]
        return ()


def read_template(folder: Path, shared: Shared) -> tuple[Template | None, tuple[Problem, ...]]:
    """One template, or what is wrong with it. Never raises for what a folder may hold."""
    problems: list[Problem] = []
    manifest = _read_manifest(folder, shared.field_sets, problems)
    paths = {**shared.scripts, SCRIPT: folder / SCRIPT}
    sources = {name: _read(path, problems) for name, path in paths.items()}
    if None in sources.values():
        return None, tuple(problems)
    texts = {name: text for name, text in sources.items() if text is not None}
    environment = language(texts)
    problems += _lint_all(environment, manifest, paths, texts)
    if problems or manifest is None:
        return None, tuple(problems)
    program = environment.get_template(SCRIPT)
    return Template(manifest.name, manifest, folder, texts[SCRIPT], program), ()


def _lint_all(
    environment: SandboxedEnvironment,
    manifest: Manifest | None,
    paths: Mapping[str, Path],
    texts: Mapping[str, str],
) -> list[Problem]:
    """The script, and every shared file it includes."""
    fields = {f.name for f in manifest.fields} if manifest else None
    problems: list[Problem] = []
    used: set[str] = set()
    waiting, done = [SCRIPT], set[str]()
    while waiting:
        name = waiting.pop()
        done.add(name)
        faults = lint(environment, name, texts[name], fields)
        problems += [_problem(paths[name], fault) for fault in faults]
        if any(fault.code == "template_syntax" for fault in faults):
            return problems
        used |= variables(environment, texts[name])
        for line, wanted in includes(environment, texts[name]):
            if wanted not in texts:
                text = f"no such file to include: {wanted}"
                problems.append(Problem(paths[name], line, "include_missing", text))
            elif wanted not in done:
                waiting.append(wanted)
    return problems + _unused(manifest, paths[SCRIPT].with_name(MANIFEST), used)


def _unused(manifest: Manifest | None, path: Path, used: set[str]) -> list[Problem]:
    """A field that the script never reads is a question with no effect."""
    problems = []
    array = manifest.resources.array if manifest else None
    if manifest and manifest.app and "app_start" not in used:
        text = "the manifest has [app], but the script never starts it: include _shared/app.sh.j2"
        problems.append(Problem(path, _line_of(path, "[app]"), "app_unused", text))
    for question in manifest.fields if manifest else ():
        reads = "setup" if question.kind is FieldKind.ENVIRONMENT else question.name
        if reads not in used and not (array and reads == array.at_once):
            text = f"field {question.name!r} is asked for, but the script never uses {reads}"
            line = _line_of(path, f'name = "{question.name}"')
            problems.append(Problem(path, line, "field_unused", text))
    return problems


def _line_of(path: Path, wanted: str) -> int:
    lines = path.read_text(encoding="utf-8").split("\n")
    return next((n for n, line in enumerate(lines, start=1) if line.strip() == wanted), 1)


def _read_manifest(
    folder: Path, field_sets: Mapping[str, tuple[Field, ...]], problems: list[Problem]
) -> Manifest | None:
    path = folder / MANIFEST
    text = _read(path, problems)
    if text is None:
        return None
    try:
        manifest = parse_manifest(text, field_sets)
    except BadManifest as bad:
        problems += [_problem(path, fault) for fault in bad.faults]
        return None
    if manifest.name != folder.name:
        text = f"name is {manifest.name!r} but the folder is {folder.name!r}"
        problems.append(Problem(path, 1, "manifest_folder", text))
    return manifest


def _read(path: Path, problems: list[Problem]) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        problems.append(Problem(path, 1, "file_missing", "there is no such file"))
        return None
    except (OSError, UnicodeDecodeError) as error:
        problems.append(Problem(path, 1, "file_unreadable", str(error)))
        return None


def _problem(path: Path, fault: Fault) -> Problem:
    return Problem(path, fault.line or 1, fault.code, fault.text)
