"""`sluice render`: a template's script, with its #SBATCH lines, ready for plain sbatch."""

import getpass
from pathlib import Path

import click

from gateway.cli.common import said, sentence, settings
from gateway.errors import Refused
from gateway.services.by_hand import PLACEHOLDERS, render_by_hand
from gateway.services.environments import load_environments
from gateway.services.templates import Catalogue


@click.command()
@click.option("-t", "--template", required=True, help="`sluice template list` has the names.")
@click.option(
    "-s",
    "--set",
    "pairs",
    multiple=True,
    metavar="NAME=VALUE",
    help="A number, a field of the template, or account, partition, qos, time_limit … A value "
    "@FILE is read from FILE.",
)
@click.option(
    "--environment",
    default="none",
    show_default=True,
    help="One of the site's, or the path of a virtual environment.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write it there.",
)
@said
def render(template: str, pairs: tuple[str, ...], environment: str, output: Path | None) -> None:
    """Print the script that the portal would send, for these values. Asks nothing of Slurm and
    needs no database."""
    found, given = settings(), dict(_pair(text) for text in pairs)
    made = render_by_hand(
        template,
        given,
        user=getpass.getuser(),
        folder=str(Path.cwd()),
        environment=environment,
        catalogue=Catalogue.load(
            found.template_folders,
            kit=found.node_kit,
            local=found.node_local,
            area=found.snapshot_area,
        ),
        environments=load_environments(found.environments_file),
    )
    if made.script is None:
        told = [Refused(one.code, field=one.field, **one.facts) for one in made.problems]
        raise click.ClickException("\n".join(sentence(one) for one in told))
    if output is None:
        click.echo(made.script, nl=False)
    else:
        output.write_text(made.script, encoding="utf-8")
    _tell_placeholders(given)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise click.UsageError(f"--set takes NAME=VALUE, not {text!r}.")
    if not value.startswith("@"):
        return name, value
    try:
        return name, Path(value[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{name}: {error}") from error


def _tell_placeholders(given: dict[str, str]) -> None:
    named = given.keys() | ({"group"} if "account" in given else set())
    left = [f"{name}={value}" for name, value in PLACEHOLDERS.items() if name not in named]
    if left:
        click.echo(f"Not of your site, set them: {', '.join(left)}", err=True)
