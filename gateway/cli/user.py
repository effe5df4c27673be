"""`sluice user`: portal accounts. A password comes from a prompt or from standard input, never
from an argument, which every account of the machine could read."""

import sys

import click

from gateway.cli.common import database, now, said
from gateway.core.access import Role
from gateway.services import app_acts, people
from gateway.store.queries.people import people as all_people

ROLE = click.Choice([role.value for role in Role])
FROM_STDIN = click.option(
    "--password-stdin", is_flag=True, help="Read the password from the first line of the input."
)


@click.group()
def user() -> None:
    """Portal accounts: add, list, change and disable them."""


@user.command()
@click.argument("login")
@click.option("--unix-user", help="The Unix account; by default the same as LOGIN.")
@click.option("--name", help="The name that others see; by default LOGIN.")
@click.option("--role", type=ROLE, default=Role.RESEARCHER.value, show_default=True)
@FROM_STDIN
@said
def add(
    login: str, unix_user: str | None, name: str | None, role: str, password_stdin: bool
) -> None:
    """Add a person. The first administrator is added here too."""
    password = _password(from_stdin=password_stdin)
    with database() as begin:
        people.add(
            login,
            unix_user=unix_user or login,
            display_name=name or login,
            role=Role(role),
            password=password,
            begin=begin,
            now=now(),
        )
    click.echo(f"Added {login} ({role}).")


@user.command()
@click.argument("login")
@FROM_STDIN
@said
def passwd(login: str, password_stdin: bool) -> None:
    """Set a new password. It ends all sessions and API tokens of the person."""
    password = _password(from_stdin=password_stdin)
    with database() as begin:
        person_id = people.set_password(login, password, begin=begin, now=now())
        app_acts.end_of_session(person_id, None, read=begin)
    click.echo(f"The password of {login} is new; all sessions have ended.")


@user.command("list")
@said
def list_people() -> None:
    """Print everybody: login, Unix account, role, state, name."""
    after = ""
    with database() as begin:
        while True:
            with begin() as session:
                found = all_people(session, after=after)
            for one in found:
                state = "disabled" if one.disabled_at else "active"
                click.echo(
                    f"{one.login}\t{one.unix_user}\t{one.role.value}\t{state}\t{one.display_name}"
                )
            if not found:
                return
            after = found[-1].login


@user.command()
@click.argument("login")
@said
def disable(login: str) -> None:
    """Let a person in no more, and end all sessions. Jobs in Slurm go on."""
    with database() as begin:
        person_id = people.disable(login, begin=begin, now=now())
        app_acts.end_of_session(person_id, None, read=begin)
    click.echo(f"{login} is disabled; all sessions have ended.")


@user.command()
@click.argument("login")
@said
def enable(login: str) -> None:
    """Let a disabled person in again."""
    with database() as begin:
        people.enable(login, begin=begin)
    click.echo(f"{login} may sign in again.")


@user.command()
@click.argument("login")
@click.argument("role", type=ROLE)
@said
def role(login: str, role: str) -> None:
    """Give a person another role."""
    with database() as begin:
        people.set_role(login, Role(role), begin=begin)
    click.echo(f"{login} is {role} now.")


@user.command()
@click.argument("login")
@click.option("--name", default="command line", help="Tells it from others in the sessions' list.")
@said
def token(login: str, name: str) -> None:
    """Print a new API token, good for a year. It is shown this once."""
    with database() as begin:
        made = people.new_token(login, name=name, begin=begin, now=now())
    click.echo(made)


def _password(*, from_stdin: bool) -> str:
    if from_stdin:
        return sys.stdin.readline().rstrip("\r\n")
    typed: str = click.prompt("Password", hide_input=True, confirmation_prompt=True)
    return typed
