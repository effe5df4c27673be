"""`sluice template`: the sbatch templates of this site."""

from pathlib import Path

import click

from gateway.config import load_settings
from gateway.errors import BadConfiguration
from gateway.services.template_check import check
from gateway.services.templates import Catalogue


@click.group()
def template() -> None:
    """List the job templates, and check new ones."""


@template.command("list")
def list_templates() -> None:
    """Print each template with its folder, and what keeps others out of the list."""
    try:
        settings = load_settings()
    except BadConfiguration as error:
        raise click.ClickException(str(error)) from error
    catalogue = Catalogue.load(settings.template_folders, kit=settings.node_kit)
    for found in catalogue.all():
        click.echo(f"{found.name}\t{found.manifest.title.en}\t{found.folder}")
    for problem in catalogue.problems:
        click.echo(f"{problem.path}:{problem.line}: {problem.text}", err=True)


@template.command("check")
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="DIR…")
def check_templates(folders: tuple[Path, ...]) -> None:
    """Check the template in each DIR; exit 1 and name file and line where something is wrong."""
    problems = [problem for folder in folders for problem in check(folder.absolute())]
    for problem in problems:
        click.echo(f"{problem.path}:{problem.line}: {problem.text}")
    if problems:
        raise SystemExit(1)
    click.echo(f"{len(folders)} checked, nothing to complain about")
