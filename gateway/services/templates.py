"""Templates are data: a folder with a manifest and a script. Catalogue them, render one.

A value of a person leaves the renderer as quoted words, whatever the template does with it. Where
those words stand is looked at when the template is loaded (see template_lint).
"""

import shlex
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from jinja2 import DictLoader, StrictUndefined, Undefined
from jinja2 import Template as Program
from jinja2.sandbox import SandboxedEnvironment

from gateway.core.manifest import BadValue, FieldKind, Manifest, Value
from gateway.core.manifest_file import BadManifest, Fault, parse_manifest
from gateway.core.sbatch import directives, normalise_script
from gateway.services.environments import Environment, setup_lines
from gateway.services.template_lint import includes, lint, variables
from gateway.wire.messages import SubmitRequest

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
    """A template that passed every check that needs no other program."""

    name: str
    manifest: Manifest
    folder: Path
    source: str
    program: Program = field(repr=False, compare=False)


class _Trusted(str):
    """Text of the renderer itself, the only kind that is not quoted."""

    __slots__ = ()


def _finalize(value: object) -> object:
    if isinstance(value, _Trusted | Undefined):
        return value  # an Undefined raises when it is printed
    if value is None:
        # A number left empty: without a word in its place, the next one would be taken for it.
        raise BadValue("field_required", "")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, tuple | list):
        return " ".join(str(_finalize(word)) for word in value)
    if isinstance(value, str):
        return shlex.quote(_inert(str(value)))
    raise TypeError(f"{type(value).__name__} cannot stand in a script")


def _inert(value: str) -> str:
    """`clean` has refused these already; a value that came another way stops here."""
    for place, character in enumerate(value, start=1):
        if unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"}:
            code = f"U+{ord(character):04X}"
            raise BadValue("field_control_character", "", place=place, character=code)
    return value


def language(sources: Mapping[str, str]) -> SandboxedEnvironment:
    """The template language: no globals, nothing undefined, every value quoted."""
    environment = SandboxedEnvironment(
        loader=DictLoader(sources),
        undefined=StrictUndefined,
        autoescape=False,  # shell, not HTML
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals.clear()
    return environment


def render(
    template: Template,
    *,
    spec: SubmitRequest,
    values: Mapping[str, Value],
    environment: Environment | None,
    nproc_per_node: int | None = None,
) -> str:
    """The script as Slurm gets it and as plain sbatch runs it. `spec.script` is not read.

    `values` come from `clean`. Without `nproc_per_node` there is one process a GPU, at least one.
    """
    body = template.program.render(
        **values,
        nodes=spec.nodes,
        nproc_per_node=nproc_per_node or max(1, spec.gpus_per_node),
        gpus_per_node=spec.gpus_per_node,
        cpus_per_task=spec.cpus_per_task,
        setup=_Trusted("\n".join(setup_lines(environment))),
    )
    shebang, _, rest = body.partition("\n")
    return normalise_script("\n".join([shebang, *directives(spec), rest])).text


class Catalogue:
    """All templates of the folders; a later folder's template hides an earlier one of its name."""

    def __init__(self, folders: tuple[Path, ...]) -> None:
        self._folders = folders
        self._seen: tuple[tuple[str, int, int], ...] | None = None
        self._templates: dict[str, Template] = {}
        self._problems: tuple[Problem, ...] = ()

    @classmethod
    def load(cls, folders: tuple[Path, ...]) -> "Catalogue":
        catalogue = cls(folders)
        catalogue._refresh()
        return catalogue

    def get(self, name: str) -> Template | None:
        self._refresh()
        return self._templates.get(name)

    def all(self) -> tuple[Template, ...]:
        """In the order of their names."""
        self._refresh()
        return tuple(self._templates[name] for name in sorted(self._templates))

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What keeps a template out of the list."""
        self._refresh()
        return self._problems

    def _refresh(self) -> None:
        """Read again when a file has changed; looking costs one stat a file."""
        seen = _fingerprint(self._folders)
        if seen == self._seen:
            return
        templates: dict[str, Template] = {}
        problems: list[Problem] = []
        shared = shared_files(self._folders)
        for folder in _template_folders(self._folders):
            template, found = read_template(folder, shared)
            problems += found
            if template is not None:
                templates[template.name] = template
        self._templates, self._problems, self._seen = templates, tuple(problems), seen


def _fingerprint(folders: tuple[Path, ...]) -> tuple[tuple[str, int, int], ...]:
    seen = []
    for folder in folders:
        for path in sorted(folder.glob("*/*")):
            try:
                stat = path.stat()
            except OSError:
                continue  # removed while we looked
            seen.append((str(path), stat.st_mtime_ns, stat.st_size))
    return tuple(seen)


def _template_folders(folders: tuple[Path, ...]) -> list[Path]:
    return [
        path
        for folder in folders
        for path in sorted(folder.glob("*"))
        if path.is_dir() and not path.name.startswith(("_", "."))
    ]


def shared_files(folders: tuple[Path, ...]) -> dict[str, Path]:
    """The files that scripts may include, by the name they include them by."""
    return {
        f"{SHARED}/{path.name}": path
        for folder in folders
        for path in sorted((folder / SHARED).glob("*.j2"))
    }


def read_template(
    folder: Path, shared: Mapping[str, Path]
) -> tuple[Template | None, tuple[Problem, ...]]:
    """One template, or what is wrong with it. Never raises for what a folder may hold."""
    problems: list[Problem] = []
    manifest = _read_manifest(folder, problems)
    paths = {**shared, SCRIPT: folder / SCRIPT}
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
    for question in manifest.fields if manifest else ():
        reads = "setup" if question.kind is FieldKind.ENVIRONMENT else question.name
        if reads not in used:
            text = f"field {question.name!r} is asked for, but the script never uses {reads}"
            line = _line_of(path, f'name = "{question.name}"')
            problems.append(Problem(path, line, "field_unused", text))
    return problems


def _line_of(path: Path, wanted: str) -> int:
    lines = path.read_text(encoding="utf-8").split("\n")
    return next((n for n, line in enumerate(lines, start=1) if line.strip() == wanted), 1)


def _read_manifest(folder: Path, problems: list[Problem]) -> Manifest | None:
    path = folder / MANIFEST
    text = _read(path, problems)
    if text is None:
        return None
    try:
        manifest = parse_manifest(text)
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
    except (OSError, UnicodeDecodeError) as error:
        problems.append(Problem(path, 1, "file_unreadable", str(error)))
        return None


def _problem(path: Path, fault: Fault) -> Problem:
    return Problem(path, fault.line or 1, fault.code, fault.text)
