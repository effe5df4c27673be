"""`sluice template`: the sbatch templates of this site."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from gateway.cli.common import said, settings
from gateway.cli.output import JSON
from gateway.core.manifest import Field, GpuRule, Manifest
from gateway.errors import Refused
from gateway.services.template_check import check
from gateway.services.templates import Catalogue


@click.group()
def template() -> None:
    """List the job templates, and check new ones."""


@template.command("list")
def list_templates() -> None:
    """Print each template with its folder, and what keeps others out of the list."""
    known = settings()
    catalogue = Catalogue.load(known.template_folders, kit=known.node_kit)
    for found in catalogue.all():
        click.echo(f"{found.name}\t{found.manifest.title.en}\t{found.folder}")
    for problem in catalogue.problems:
        click.echo(f"{problem.path}:{problem.line}: {problem.text}", err=True)


@template.command("show")
@click.argument("name")
@click.option(
    "--language",
    type=click.Choice(["en", "zh_Hans"]),
    default="en",
    show_default=True,
    help="Of labels and help.",
)
@JSON
@said
def show_template(name: str, language: str, as_json: bool) -> None:
    """Print what NAME asks for: its numbers, and each field with its kind, range and default."""
    found = settings()
    catalogue = Catalogue.load(found.template_folders, kit=found.node_kit)
    one = catalogue.get(name)
    if one is None:
        raise Refused("no_such_template", known=", ".join(t.name for t in catalogue.all()))
    facts = _facts(one.manifest, language)
    if as_json:
        click.echo(json.dumps(facts, ensure_ascii=False, indent=2))
        return
    click.echo(f"{facts['title']}\n{facts['summary']}\n")
    for line in (*_numbers(facts), *_questions(facts)):
        click.echo(line)


def _facts(manifest: Manifest, language: str) -> dict[str, Any]:
    own = manifest.resources
    numbers = {
        "nodes": own.nodes,
        "nproc_per_node": own.nproc_per_node,
        "gpus_per_node": own.gpus_per_node if own.gpus is GpuRule.CHOSEN else None,
    }
    return {
        "name": manifest.name,
        "title": manifest.title.get(language),
        "summary": manifest.summary.get(language),
        "gpus": own.gpus.value,
        "cpus_per_process": own.cpus_per_process,
        "array": asdict(own.array) if own.array else None,
        "numbers": {name: asdict(range_) for name, range_ in numbers.items() if range_},
        "fields": [_field(field, language) for field in manifest.fields],
    }


def _field(field: Field, language: str) -> dict[str, Any]:
    return {
        "name": field.name,
        "kind": field.kind.value,
        "section": field.section.value,
        "required": field.required,
        "default": field.default,
        "min": field.min,
        "max": field.max,
        "choices": [choice.value for choice in field.choices],
        "pattern": field.pattern,
        "label": field.label.get(language),
        "help": field.help.get(language),
    }


def _numbers(facts: dict[str, Any]) -> Iterator[str]:
    for name, allowed in facts["numbers"].items():
        if allowed["min"] == allowed["max"]:
            yield f"{name}  always {allowed['default']}"
        else:
            yield f"{name}  {allowed['min']} to {allowed['max']}, default {allowed['default']}"


def _questions(facts: dict[str, Any]) -> Iterator[str]:
    for field in facts["fields"]:
        words = [field["kind"], "required" if field["required"] else ""]
        words += [f"{key} {field[key]}" for key in ("min", "max") if field[key] is not None]
        words += ["one of " + ", ".join(field["choices"])] if field["choices"] else []
        words += [f"default {field['default']}"] if field["default"] else []
        yield f"{field['name']}  {', '.join(word for word in words if word)}"
        yield f"    {field['label']}. {field['help']}"


@template.command("check")
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="DIR…")
def check_templates(folders: tuple[Path, ...]) -> None:
    """Check the template in each DIR, a folder or the name of a template of this site.

    Exit 1 and name file and line where something is wrong."""
    problems = [problem for folder in folders for problem in check(_folder(folder))]
    for problem in problems:
        click.echo(f"{problem.path}:{problem.line}: {problem.text}")
    if problems:
        raise SystemExit(1)
    click.echo(f"{len(folders)} checked, nothing to complain about")


def _folder(given: Path) -> Path:
    """A folder as it is. A bare name that is none may be a template that the site has, or that
    was left out of its list for its faults."""
    if given.exists() or given.name != str(given):
        return given.absolute()
    places = reversed(settings().template_folders)
    return next((place / given for place in places if (place / given).is_dir()), given.absolute())
