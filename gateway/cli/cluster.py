"""`sluice cluster`: a real Slurm on this machine, for development and trying out."""

import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, ParamSpec, TypeVar

import click

if TYPE_CHECKING:
    from contrib.devcluster.instance import Instance, Status

P = ParamSpec("P")
R = TypeVar("R")
CHECKOUT = Path(__file__).resolve().parents[2]
USER = click.option("--user", help="Run as this account of the cluster instead of root.")
NODE = click.option("--node", help="Run on this node instead of the head.")


def told(command: Callable[P, R]) -> Callable[P, R]:
    """Errors of the cluster become messages, without a stack of calls."""

    @wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        _reach_checkout()
        from contrib.devcluster.errors import DevclusterError  # noqa: PLC0415 - not in a wheel

        try:
            return command(*args, **kwargs)
        except DevclusterError as failed:
            raise click.ClickException(str(failed)) from failed

    return wrapped


@click.group()
def cluster() -> None:
    """A real Slurm on this machine, with make-believe GPUs (needs root)."""


@cluster.command()
@click.option("--with-torch", is_flag=True, help="Also install PyTorch for jobs (large).")
@click.option(
    "--site",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Another description of nodes, QoS and groups than contrib/devcluster/site.toml.",
)
@told
def up(with_torch: bool, site: Path | None) -> None:
    """Start the cluster; the first time builds it, which takes about two minutes."""
    from contrib.devcluster.paths import SITE_FILE  # noqa: PLC0415 - not in a wheel

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that it cleans up as on Ctrl-C
    instance = _instance()
    instance.up(say=_say, site_file=site or SITE_FILE)
    if with_torch:
        _torch(allow_cuda=False, frameworks=False)
    click.echo(_text(instance.status()))


@cluster.command()
@told
def down() -> None:
    """End the cluster. Nothing stays but the cache: jobs and home folders are gone."""
    was_up = _instance().down()
    click.echo("The cluster is down." if was_up else "The cluster was not up.")


@cluster.command()
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@told
def status(as_json: bool) -> None:
    """Tell whether the cluster is up, and its nodes. Exit code 3 when it is down."""
    _require_root()
    found = _instance().status()
    click.echo(json.dumps(asdict(found)) if as_json else _text(found))
    if not found.up:
        sys.exit(3)


@cluster.command("exec", context_settings={"ignore_unknown_options": True})
@USER
@NODE
@click.option("--env", "pairs", multiple=True, metavar="NAME=VALUE", help="May be repeated.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@told
def execute(
    user: str | None, node: str | None, pairs: tuple[str, ...], command: tuple[str, ...]
) -> None:
    """Run COMMAND inside the cluster: sluice cluster exec -- sinfo"""
    env = dict(pair.partition("=")[::2] for pair in pairs)
    _become(_instance().enter_argv(command, user=user, env=env, node=node))


@cluster.command()
@USER
@NODE
@told
def shell(user: str | None, node: str | None) -> None:
    """Open a shell inside the cluster."""
    env = {"TERM": os.environ.get("TERM", "dumb")}
    _become(_instance().enter_argv(["bash", "-l"], user=user, env=env, node=node))


@cluster.command()
@click.argument("name", type=click.Choice(["slurmctld", "slurmdbd", "slurmd"]))
@click.argument("action", type=click.Choice(["stop", "start", "kill", "freeze", "thaw"]))
@click.option("--node", help="Whose slurmd.")
@told
def daemon(name: str, action: str, node: str | None) -> None:
    """Stop, start, kill, freeze or thaw one Slurm daemon, to see what the portal does then."""
    _require_root()
    _instance().daemon(name, action, node=node)


@cluster.command()
@click.option("--allow-cuda", is_flag=True, help="Take a CUDA build where no other is offered.")
@click.option("--frameworks", is_flag=True, help="With transformers, accelerate and DeepSpeed.")
@told
def torch(allow_cuda: bool, frameworks: bool) -> None:
    """Install PyTorch for jobs at /opt/envs/torch-2.13; says first how much will be downloaded."""
    _require_root()
    _torch(allow_cuda=allow_cuda, frameworks=frameworks)


def _torch(*, allow_cuda: bool, frameworks: bool) -> None:
    from contrib.devcluster import paths, rootfs, torchenv  # noqa: PLC0415 - not in a wheel

    cache = paths.cache_folder()
    root = rootfs.ensure(cache, _say)
    torchenv.ensure(cache, root, _say, allow_cuda=allow_cuda, frameworks=frameworks)
    click.echo(f"PyTorch is at {torchenv.PLACE} inside the cluster.")


@cluster.command()
@told
def jupyter() -> None:
    """Install JupyterLab and TensorBoard for jobs at /opt/envs/jupyter (about 400 MB)."""
    from contrib.devcluster import jupyterenv, paths, rootfs  # noqa: PLC0415 - not in a wheel

    _require_root()
    cache = paths.cache_folder()
    jupyterenv.ensure(cache, rootfs.ensure(cache, _say), _say)
    click.echo(f"JupyterLab is at {jupyterenv.PLACE} inside the cluster.")


def _instance() -> "Instance":
    from contrib.devcluster.instance import Instance  # noqa: PLC0415 - not in a wheel
    from contrib.devcluster.paths import home_folder  # noqa: PLC0415 - not in a wheel

    return Instance(home_folder())


def _require_root() -> None:
    from contrib.devcluster import host  # noqa: PLC0415 - not in a wheel

    host.require_root()


def _reach_checkout() -> None:
    if not (CHECKOUT / "contrib" / "devcluster" / "__init__.py").is_file():
        raise click.ClickException(
            "The development cluster belongs to the source checkout: an installed package does "
            "not hold it. Run this command from a checkout (pip install -e .)."
        )
    if str(CHECKOUT) not in sys.path:
        sys.path.append(str(CHECKOUT))


def _become(argv: list[str]) -> NoReturn:
    """Replace this process, so that signals and the exit code are the command's own."""
    _require_root()
    sys.stdout.flush()
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and exec passes that on
        signal.signal(number, signal.SIG_DFL)
    os.execvp(argv[0], argv)  # noqa: S606 - built from a list, no shell takes part


def _text(found: "Status") -> str:
    if not found.up:
        return "The cluster is down."
    versions = ", ".join(f"{name} {number}" for name, number in (found.versions or {}).items())
    lines = [f"The cluster is up ({versions}).", f"  process {found.pid}, head {found.address}"]
    lines += [f"  {name:<12} {partition:<10} {state}" for name, partition, state in found.nodes]
    return "\n".join(lines)


def _say(line: str) -> None:
    click.echo(line, err=True)
