"""The account that web and worker run as when `sluice up` is started by root."""

import os
import pwd
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import click

from gateway.config import Settings

DEFAULT, FALLBACK = "sluice", "nobody"
# What web and worker write. The run folder stays root's: the broker's log of acts lies there.
_THEIRS = ("sluice.db", "sluice.db-wal", "sluice.db-shm", "secret_key", "logs")
_LOOK = """
import os, sys
import gateway.web.app, gateway.worker.main
home = sys.argv[1]
sys.exit(not os.access(home, os.R_OK | os.W_OK | os.X_OK))
"""


@dataclass(frozen=True, slots=True)
class Account:
    name: str
    uid: int
    gid: int


def own() -> Account:
    """Who runs this process."""
    uid = os.geteuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = str(uid)
    return Account(name, uid, os.getegid())


def unprivileged(wanted: str | None) -> Account:
    """The named account, or the usual ones. Root is refused: that is what this is for."""
    for name in [wanted] if wanted else [DEFAULT, FALLBACK]:
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        if found.pw_uid == 0:
            raise click.ClickException(f"{name} is root: web and worker need another account.")
        return Account(found.pw_name, found.pw_uid, found.pw_gid)
    raise click.ClickException(f"There is no account {wanted or DEFAULT}.")


def give_home(settings: Settings, account: Account) -> None:
    """Give the account what web and worker write under $SLUICE_HOME.

    Links are not followed and files with a second name are left alone: the folder was the
    account's before, and root must not be led to give away anything else.
    """
    os.chown(settings.home, account.uid, account.gid, follow_symlinks=False)
    for name in _THEIRS:
        path = settings.home / name
        try:
            found = path.lstat()
        except FileNotFoundError:
            continue
        plain = stat.S_ISREG(found.st_mode) and found.st_nlink == 1
        if plain or stat.S_ISDIR(found.st_mode):
            os.chown(path, account.uid, account.gid, follow_symlinks=False)


def can_run(account: Account, home: Path) -> bool:
    """Whether this account can read the interpreter and the package, and write the folder."""
    try:
        looked = subprocess.run(  # noqa: S603  # a list of our own
            [sys.executable, "-c", _LOOK, str(home)],
            user=account.uid,
            group=account.gid,
            extra_groups=[],
            cwd="/",
            capture_output=True,
            check=False,
        )
    except OSError:
        return False
    return looked.returncode == 0
