"""A file of policy, as the changes that it means."""

from typing import TextIO

import click

from gateway.cli import qos_lines as lines
from gateway.core.policy_change import Item, in_order
from gateway.core.policy_file import BadPolicyFile, load
from gateway.services.policy_present import present
from gateway.store.uow import Begin

FILE = click.argument("file", type=click.File(encoding="utf-8"))


def items_of(file: TextIO, begin: Begin) -> tuple[Item, ...]:
    try:
        read = load(file.read())
    except BadPolicyFile as error:
        told = [lines.problem_line(file.name, one) for one in error.problems]
        raise click.ClickException("\n".join(told)) from error
    except UnicodeDecodeError as error:
        raise click.ClickException(f"{file.name}: {error}") from error
    with begin() as session:
        there = present(session)
    return in_order(there.items([*read.qos, *read.groups]))
