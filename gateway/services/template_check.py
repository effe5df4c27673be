"""`sluice template check`: all that the catalogue looks at, and bash's own opinion of samples."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

from gateway.config import assets
from gateway.core.answers import BadValue, Value, clean
from gateway.core.manifest import Choice, Field, FieldKind, Text
from gateway.services.environments import NONE, Environment, EnvironmentKind
from gateway.services.template_files import (
    SCRIPT,
    Problem,
    Template,
    read_shared,
    read_template,
)
from gateway.services.templates import render
from gateway.wire.messages import SubmitRequest

_SECONDS = 30
_SAMPLE = {
    FieldKind.PATH: "folder/script.py",
    FieldKind.ARGUMENTS: "--name 'two words' $HOME",
    FieldKind.COMMAND: "program --name 'two words'",
    FieldKind.PATHS: "/datasets/one /datasets/two",
    FieldKind.DATASETS: "/datasets/one /datasets/two",
    FieldKind.TABLE: 'lr,note\n0.1,"two words, $HOME"\n0.2,\'\n',
    FieldKind.TEXT: "text",
    FieldKind.ENVIRONMENT: "sample",
}
_NUMBERS = frozenset({FieldKind.INTEGER, FieldKind.HOURS})
_ENVIRONMENTS = (
    NONE,
    Environment("sample", Text("", ""), EnvironmentKind.VENV, path="/opt/envs/sample"),
)


def check(folder: Path) -> tuple[Problem, ...]:
    """Every fault of the template in `folder`, with file and line. Starts bash, runs no job."""
    if not folder.is_dir():
        return (Problem(folder, 1, "folder_missing", "no such folder"),)
    shared = read_shared((assets() / "sbatch_templates", folder.parent))
    template, problems = read_template(folder, shared)
    if template is None or shared.problems:
        return (*shared.problems, *problems)
    sources = [folder / SCRIPT, *shared.scripts.values()]
    found: dict[tuple[Path, int, str], Problem] = {}
    try:
        samples = list(_samples(template))
    except BadValue:
        return tuple(_numbers_left_empty(template))
    for script in samples:
        for code, line, text in (*_bash(script), *_shellcheck(script)):
            path, number = _origin(script, line, sources)
            found.setdefault((path, number, text), Problem(path, number, code, text))
    return tuple(found.values())


def _numbers_left_empty(template: Template) -> Iterator[Problem]:
    """Where a number is printed that a person may leave empty."""
    for field in template.manifest.fields:
        if field.kind not in _NUMBERS or field.required or field.default:
            continue
        printed = re.compile(rf"\{{\{{-?\s*{field.name}\s*-?\}}\}}")
        for number, line in enumerate(template.source.split("\n"), start=1):
            if printed.search(line):
                text = f"{field.name} may be left empty: print it inside {{% if {field.name} %}}"
                yield Problem(template.folder / SCRIPT, number, "value_empty", text)


def _samples(template: Template) -> Iterator[str]:
    """The script with nothing optional, with everything, and for each choice."""
    for field_values, environment in product(_value_sets(template), _ENVIRONMENTS):
        for nodes in {template.manifest.resources.nodes.min, template.manifest.resources.nodes.max}:
            spec = _spec(template, nodes)
            processes = template.manifest.resources.nproc_per_node.max
            yield render(
                template,
                spec=spec,
                values=field_values,
                environment=environment,
                nproc_per_node=processes,
            )


def _value_sets(template: Template) -> Iterator[dict[str, Value]]:
    fields = template.manifest.fields
    yield {field.name: _value(field, filled=field.required) for field in fields}
    full = {field.name: _value(field, filled=True) for field in fields}
    yield full
    for field in fields:
        for choice in field.choices:
            yield {**full, field.name: choice.value}


def _value(field: Field, *, filled: bool) -> Value:
    if not filled:
        return clean(replace(field, required=False), "")
    if field.kind is FieldKind.BOOL:
        return True
    if field.kind in _NUMBERS:
        return next((n for n in (field.max, field.min) if n is not None), 1)
    if field.kind is FieldKind.CHOICE:
        return _first(field.choices)
    if field.default or field.pattern:
        return clean(field, field.default) if field.default else "text"
    longest = field.max if field.kind is FieldKind.TEXT else None
    return clean(field, _SAMPLE[field.kind][:longest])


def _first(choices: tuple[Choice, ...]) -> str:
    return choices[0].value


def _spec(template: Template, nodes: int) -> SubmitRequest:
    resources, options = template.manifest.resources, template.manifest.sbatch
    processes = resources.nproc_per_node.max
    return SubmitRequest(
        token="sample",  # noqa: S106  # no secret
        user="sample",
        name="sample",
        account="sample",
        partition="sample",
        qos="sample",
        nodes=nodes,
        gpus_per_node=resources.gpus_for(processes, resources.gpus_per_node.max),
        cpus_per_task=resources.cpus_for(processes),
        time_limit_minutes=60,
        working_directory="/home/sample",
        output="/home/sample/%x-%j.out",
        script="",
        requeue=options.requeue,
        append_output=options.append_output,
        signal=options.signal,
    )


def _bash(script: str) -> list[tuple[str, int, str]]:
    done = _run(["bash", "-n"], script)
    return [
        ("shell_syntax", int(match[1]), f"bash: {match[2]}")
        for match in re.finditer(r"line (\d+): (.*)", done.stderr if done else "")
    ][:1]  # what follows the first is mostly its echo


def _shellcheck(script: str) -> list[tuple[str, int, str]]:
    done = _run(["shellcheck", "--shell=bash", "--severity=warning", "--format=json", "-"], script)
    if done is None or not done.stdout:
        return []
    return [
        ("shellcheck", int(remark["line"]), f"SC{remark['code']}: {remark['message']}")
        for remark in json.loads(done.stdout)
    ]


def _run(words: list[str], script: str) -> subprocess.CompletedProcess[str] | None:
    """None where the program is not installed."""
    program = shutil.which(words[0])
    if program is None:
        return None
    try:
        return subprocess.run(  # noqa: S603  # fixed words; the script is only read
            [program, *words[1:]],
            input=script,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(words, 1, "", f"{program} took over {_SECONDS} s")


def _origin(script: str, line: int, sources: list[Path]) -> tuple[Path, int]:
    """The file and line that a line of the rendered script came from."""
    lines = script.split("\n")
    rendered = lines[line - 1].strip() if line <= len(lines) else ""
    for path in sources:
        for number, text in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
            if rendered and _fits(text.strip(), rendered):
                return path, number
    script_path = sources[0]
    return script_path, script_path.read_text(encoding="utf-8").count("\n")


def _fits(template_line: str, rendered: str) -> bool:
    parts = re.split(r"\{\{.*?\}\}|\{%.*?%\}", template_line)
    if len(parts) > 1 and not "".join(parts).strip():
        return False
    return re.fullmatch(".*".join(map(re.escape, parts)), rendered) is not None
