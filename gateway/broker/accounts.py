"""The Unix account that a request names, and which accounts are refused."""

import grp
import os
import pwd
import re
from dataclasses import dataclass

from gateway.errors import BrokerRefused

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,63}", re.ASCII)
# A system account that a site gives a high uid still has no shell to run a job with.
_NO_LOGIN = frozenset({"nologin", "false", "sync", "halt", "shutdown"})


@dataclass(frozen=True, slots=True)
class Account:
    """A person's account, with every group that the person is in."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str
    shell: str

    def environment(self) -> dict[str, str]:
        """All that a job of this person inherits; nothing of the broker's own."""
        return {
            "HOME": self.home,
            "USER": self.name,
            "LOGNAME": self.name,
            "SHELL": self.shell,
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
        }


def resolve(name: str, *, min_uid: int) -> Account:
    """The account, or BrokerRefused: unknown_user, root_refused, system_account."""
    if not _NAME.fullmatch(name):
        raise BrokerRefused("not an account name", code="unknown_user")
    try:
        entry = pwd.getpwnam(name)
    except KeyError as error:
        raise BrokerRefused(f"no account {name}", code="unknown_user") from error
    if entry.pw_uid == 0 or entry.pw_gid == 0:
        raise BrokerRefused(f"{name} is root", code="root_refused")
    shell = os.path.basename(entry.pw_shell)  # noqa: PTH119  # a name, not a path to touch
    if entry.pw_uid < min_uid or shell in _NO_LOGIN:
        raise BrokerRefused(f"{name} is a system account", code="system_account")
    return Account(
        name=entry.pw_name,
        uid=entry.pw_uid,
        gid=_known_group(entry.pw_gid),
        groups=_groups(entry.pw_name, entry.pw_gid),
        home=entry.pw_dir,
        shell=entry.pw_shell or "/bin/sh",
    )


def _known_group(gid: int) -> int:
    try:
        return grp.getgrgid(gid).gr_gid
    except KeyError as error:
        raise BrokerRefused(f"group {gid} has no name", code="group_unknown") from error


def _groups(name: str, gid: int) -> tuple[int, ...]:
    # Group 0 would give a job what belongs to root's group; nobody's work needs it.
    return tuple(group for group in os.getgrouplist(name, gid) if group != 0)
