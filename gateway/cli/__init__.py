"""The command `sluice`. Each subcommand is imported when it is asked for: `sluice user` must not
wait for what only `sluice up` needs."""

from importlib import import_module

import click

from gateway import __version__, logs

_COMMANDS = {
    "up": "gateway.cli.up:up",
    "web": "gateway.cli.up:web",
    "worker": "gateway.cli.up:worker",
    "doctor": "gateway.cli.doctor:doctor",
    "nginx-config": "gateway.cli.front:nginx_config",
    "notebook": "gateway.cli.notebook:notebook",
    "user": "gateway.cli.user:user",
    "group": "gateway.cli.group:group",
    "db": "gateway.cli.db:db",
    "template": "gateway.cli.template:template",
    "render": "gateway.cli.render:render",
    "plan": "gateway.cli.plan:plan",
    "spot": "gateway.cli.spot:spot",
    "price": "gateway.cli.price:price",
    "qos": "gateway.cli.qos:qos",
    "grant": "gateway.cli.grant:grant",
    "ledger": "gateway.cli.ledger:ledger",
    "budget": "gateway.cli.budget:budget",
    "contribution": "gateway.cli.contribution:contribution",
    "history": "gateway.cli.history:history",
    "forecast": "gateway.cli.forecast:forecast",
    "usage": "gateway.cli.usage:usage",
    "waits": "gateway.cli.waits:waits",
    "dataset": "gateway.cli.dataset:dataset",
    "recipe": "gateway.cli.recipe:recipe",
    "snapshot": "gateway.cli.snapshot:snapshot",
    "environment": "gateway.cli.environment:environment",
    "volume": "gateway.cli.volume:volume",
    "results": "gateway.cli.results:results",
    "cluster": "gateway.cli.cluster:cluster",
}


class _Commands(click.Group):
    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, _, name = _COMMANDS[cmd_name].partition(":")
        command = getattr(import_module(module), name)
        assert isinstance(command, click.Command)
        return command


@click.group(cls=_Commands)
@click.version_option(__version__, package_name="sluice-gateway")
def main() -> None:
    """Sluice: a web gateway to a Slurm cluster. All state lives under $SLUICE_HOME."""
    logs.configure(level="WARNING")  # on stderr: what a command prints is its answer alone
