"""`sluice up`: web, worker and broker on one host, for trying it and for small sites."""

import os
import signal
import sys
import threading
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from gateway.cli import account as accounts
from gateway.cli import front
from gateway.cli.account import Account
from gateway.cli.children import Recipe, supervise
from gateway.cli.common import make_home, private_files, said, settings
from gateway.config import Settings
from gateway.store.queries.people import people
from gateway.store.schema import upgrade
from gateway.store.uow import make_begin, make_engine

WEB_THREADS = 4
CHECKOUT = Path(__file__).resolve().parents[2]
# Inside the development cluster; /run/sluice there is $SLUICE_HOME/run here.
CLUSTER_PYTHON, CLUSTER_PACKAGE = "/opt/sluice-broker/bin/python", "/opt/sluice"
CLUSTER_RUN = Path("/run/sluice")
CLUSTER_AREAS = {  # unless other ones are given
    "SLUICE_BROKER_VOLUMES": "/run/devcluster/volumes.toml",
    "SLUICE_BROKER_FILE_AREAS": "/home:/datasets:/volumes:/archive",
}
HOST_ACTS = Path("/var/log/sluice")


@click.command()
@click.option("--user", help="As root: the account of web and worker [sluice, or nobody].")
@click.option("--no-broker", is_flag=True, help="The broker is a service of its own.")
@said
def up(user: str | None, no_broker: bool) -> None:
    """Run web, worker and broker until ended; start again what dies."""
    found = settings()
    make_home(found)
    _ready_database(found)
    account = _account(found, user)
    program = front.usable(found)
    recipes = [_web(found, account, behind_nginx=program is not None), _worker(found, account)]
    if program is not None:
        recipes.append(front.recipe(found, account, program))
    else:
        _say(
            "Notebooks cannot be opened: nginx is not installed (or the path of its socket is too"
            " long). All else works."
        )
    broker = None if no_broker else _broker(found, account or accounts.own())
    if broker is not None:
        recipes.insert(0, broker)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: stop.set())
    names = ", ".join(recipe.name for recipe in recipes)
    _say(f"Sluice is at http://{found.listen} ({names}; state in {found.home})")
    supervise(recipes, stop=stop, say=_say)
    _say("All processes have ended.")


@click.command()
@said
def web() -> None:
    """Run the web process alone."""
    found = settings()
    make_home(found)
    _become(_web_argv(found))


@click.command()
@said
def worker() -> None:
    """Run the worker alone."""
    make_home(settings())
    _become([sys.executable, "-m", "gateway.worker"])


def _ready_database(found: Settings) -> None:
    engine = make_engine(found.database_url)
    with private_files():
        upgrade(engine)
    with make_begin(engine, read_only=True)() as session:
        anybody = bool(people(session))
    engine.dispose()
    if not anybody:
        _say("Nobody can sign in yet: sluice user add LOGIN --role administrator")


def _account(found: Settings, wanted: str | None) -> Account | None:
    """Whom web and worker are to become; None: they stay who we are."""
    if os.geteuid() != 0:
        if wanted is not None and wanted != accounts.own().name:
            raise click.ClickException("--user needs root.")
        return None
    account = accounts.unprivileged(wanted)
    accounts.give_home(found, account)
    if accounts.can_run(account, found.home):
        return account
    if wanted is not None:
        raise click.ClickException(
            f"{wanted} cannot read {sys.executable} and the package, or not enter {found.home}: "
            "install where every account can read."
        )
    _say(
        f"WARNING: web and worker run as root, because {account.name} cannot read "
        f"{sys.executable} and the package, or not enter {found.home}. Good enough for a trial "
        "on one's own machine; for anything else install where every account can read."
    )
    accounts.give_home(found, accounts.own())
    return None


def _web(found: Settings, account: Account | None, *, behind_nginx: bool) -> Recipe:
    argv = _web_argv(found, f"unix:{front.web_socket(found)}" if behind_nginx else found.listen)
    return Recipe("web", lambda: argv, _environment(found), account)


def _worker(found: Settings, account: Account | None) -> Recipe:
    argv = [sys.executable, "-m", "gateway.worker"]
    return Recipe("worker", lambda: argv, _environment(found), account)


def _web_argv(found: Settings, bind: str | None = None) -> list[str]:
    # Longer than the broker may take, or gunicorn would end a request that waits for Slurm.
    seconds = int(found.broker_timeout_seconds) + 15
    argv = [sys.executable, "-m", "gunicorn", "gateway.web.app:served()", "--preload"]
    argv += ["--config", "python:gateway.cli.serving"]
    argv += ["--bind", bind or found.listen, "--workers", str(found.web_workers)]
    argv += ["--threads", str(WEB_THREADS), "--timeout", str(seconds), "--graceful-timeout", "5"]
    # Longer than the proxies keep theirs, or one of them meets a connection that just closed.
    argv += ["--keep-alive", "75", "--log-level", "warning", "--no-control-socket"]
    shared_memory = Path("/dev/shm")  # noqa: S108  # gunicorn makes a file of its own in it
    if shared_memory.is_dir():
        argv += ["--worker-tmp-dir", str(shared_memory)]
    return argv


def _environment(found: Settings) -> dict[str, str]:
    return {**os.environ, "SLUICE_HOME": str(found.home), "PYTHONUNBUFFERED": "1"}


def _broker(found: Settings, caller: Account) -> Recipe | None:
    """The broker, where there is a Slurm to speak to: in the development cluster, or here."""
    cluster = _development_cluster(found.home)
    if os.geteuid() != 0:
        _say("The broker is not started: it needs root to act as the people. Submitting waits.")
        return None
    if cluster is not None:
        env = _broker_environment(found, caller, sockets=CLUSTER_RUN, acts=CLUSTER_RUN / "broker")
        env = CLUSTER_AREAS | env
        env["PYTHONPATH"] = CLUSTER_PACKAGE
        failed = import_module("contrib.devcluster.errors").DevclusterError

        def argv() -> Sequence[str]:
            entered: list[str] = cluster.enter_argv(
                [CLUSTER_PYTHON, "-m", "gateway.broker"], env=env
            )
            return entered

        return Recipe("broker", argv, dict(os.environ), unready=(failed, OSError), umask=-1)
    if find_spec("pyslurm") is None:
        _say("The broker is not started: pyslurm is not installed, and no `sluice cluster` is up.")
        return None
    # Not under the home: its owner, the web's account, could put a link in the way of root.
    env = _broker_environment(found, caller, sockets=found.home / "run", acts=HOST_ACTS)
    env["PATH"] = os.environ.get("PATH", "/usr/bin:/bin")
    if "SLURM_CONF" in os.environ:
        env["SLURM_CONF"] = os.environ["SLURM_CONF"]
    here = [sys.executable, "-m", "gateway.broker"]
    return Recipe("broker", lambda: here, env, umask=-1)


def _broker_environment(
    found: Settings, caller: Account, *, sockets: Path, acts: Path
) -> dict[str, str]:
    """Only what the broker reads: it shares no file of settings with the web."""
    given = {name: value for name, value in os.environ.items() if name.startswith("SLUICE_BROKER_")}
    return {
        "SLUICE_BROKER_ACTS_LOG": str(acts / "acts.log"),
        **given,
        "SLUICE_BROKER_SOCKET": str(sockets / found.broker_socket.name),
        "SLUICE_BROKER_ALLOWED_UIDS": str(caller.uid),
        "SLUICE_CLUSTER_NAME": found.cluster_name,
    }


def _development_cluster(home: Path) -> Any:
    """The running development cluster of this $SLUICE_HOME; None without one."""
    if not (CHECKOUT / "contrib" / "devcluster" / "instance.py").is_file():
        return None  # an installed package does not hold it
    if str(CHECKOUT) not in sys.path:
        sys.path.append(str(CHECKOUT))
    instance = import_module("contrib.devcluster.instance").Instance(home)
    return instance if instance.running() is not None else None


def _become(argv: list[str]) -> None:
    """Replace this process, so that signals and the exit code are the service's own."""
    sys.stdout.flush()
    os.umask(0o077)
    os.execv(argv[0], argv)  # noqa: S606  # a list, no shell takes part


def _say(text: str) -> None:
    click.echo(text, err=True)
