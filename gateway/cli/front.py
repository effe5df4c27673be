"""The nginx of `sluice up`, and what `sluice nginx-config` prints for sites that run their own."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import click

from gateway.cli.account import Account
from gateway.cli.children import Recipe
from gateway.cli.common import said, settings
from gateway.cli.nginx_conf import Front, site, whole
from gateway.config import Settings
from gateway.errors import BadConfiguration
from gateway.web.frontdoor import word

SEARCHED = "/usr/sbin:/usr/local/sbin:/usr/bin"
WORKERS = 2
LONGEST_SOCKET = 100  # a socket's path has at most 107 bytes
ANSWER_SECONDS = 10


def nginx() -> str | None:
    """The program; None where it is not installed, or lacks what we need of it."""
    found = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:{SEARCHED}")
    if found is None:
        return None
    try:
        told = subprocess.run(  # noqa: S603  # a list of our own
            [found, "-V"], capture_output=True, text=True, timeout=ANSWER_SECONDS, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return found if "auth_request" in told.stderr else None


def folder(found: Settings) -> Path:
    return found.home / "run" / "nginx"


def web_socket(found: Settings) -> Path:
    """Where gunicorn listens while nginx stands before it."""
    return folder(found) / "web.sock"


def usable(found: Settings) -> str | None:
    """The program, where this installation can have it before its web process."""
    if len(os.fsencode(web_socket(found))) > LONGEST_SOCKET:
        return None
    return nginx()


def recipe(found: Settings, account: Account | None, program: str) -> Recipe:
    """nginx without rights, all of it in the run folder. The file is written anew each time: it
    holds the word, so it is nobody else's."""
    place, config = folder(found), found.home / "run" / "nginx.conf"
    place.mkdir(mode=0o700, exist_ok=True)
    front = Front(
        listen=found.listen,
        web=str(web_socket(found)),
        word=_word(found, account),
        folder=str(place),
        read_seconds=read_seconds(found),
    )
    as_root = account is None and os.geteuid() == 0
    _private(config, whole(front, workers=WORKERS, as_root=as_root))
    if account is not None:
        for path in (place, config):
            os.chown(path, account.uid, account.gid, follow_symlinks=False)
    argv = [program, "-e", "stderr", "-p", str(place), "-c", str(config)]
    return Recipe("nginx", lambda: argv, {"PATH": os.environ.get("PATH", SEARCHED)}, account)


def read_seconds(found: Settings) -> int:
    """Longer than gunicorn gives a request that waits for Slurm."""
    return int(found.broker_timeout_seconds) + 30


@click.command()
@click.option("--listen", default="443", show_default=True, help="Address and port, or a port.")
@click.option("--name", "names", multiple=True, help="The site's name; others are refused.")
@click.option("--web", help="Where the web process listens. [default: the setting listen]")
@click.option("--certificate", default="", help="With --certificate-key: TLS.")
@click.option("--certificate-key", default="")
@click.option(
    "--cache", default="/var/cache/nginx/sluice", show_default=True, help="A folder of nginx."
)
@said
def nginx_config(web: str | None, cache: str, **given: Any) -> None:
    """Print the server of the portal for an nginx of the site's own.

    It holds a secret word that only nginx and the portal may know: keep the file readable by root
    alone.
    """
    found = settings()
    if bool(given["certificate"]) != bool(given["certificate_key"]):
        raise click.UsageError("--certificate and --certificate-key go together.")
    try:
        front = Front(
            web=web or found.listen,
            word=word(found.home),
            folder=cache,
            read_seconds=read_seconds(found),
            **given,
        )
    except ValueError as error:
        raise BadConfiguration(str(error)) from error
    click.echo(site(front), nl=False)


def _word(found: Settings, account: Account | None) -> str:
    """Made of the portal's key, which is the account's own file from its first moment on."""
    made = word(found.home)
    if account is not None:
        os.chown(found.home / "secret_key", account.uid, account.gid, follow_symlinks=False)
    return made


def _private(path: Path, text: str) -> None:
    draft = path.with_name(f"{path.name}.new")
    draft.unlink(missing_ok=True)
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(text)
    draft.rename(path)
