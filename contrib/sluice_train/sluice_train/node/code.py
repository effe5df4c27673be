"""Which code a job begins with: the git commit of its working folder, for whoever repeats it."""

from __future__ import annotations

import os
import subprocess

SECONDS = 5.0  # a large tree on a slow disk is not waited for


def noted() -> dict[str, object] | None:
    """`commit`, `clean` (None: not known) and `remote`; None where there is no commit."""
    commit = _git("rev-parse", "--verify", "HEAD")
    if not commit:
        return None
    changes = _git("status", "--porcelain", "--untracked-files=no")
    remote = _git("config", "--get", "remote.origin.url") or ""
    return {
        "commit": commit,
        "clean": None if changes is None else not changes,
        "remote": without_secret(remote),
    }


def without_secret(remote: str) -> str:
    """An address without the name and password that people put into it."""
    scheme, mark, rest = remote.partition("://")
    if not mark:
        return remote
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"


def _git(*words: str) -> str | None:
    """What it prints; None where it did not answer, or there is no git or no repository."""
    given = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
    # A hook of a repository that is not one's own must not run: git asks this of its settings.
    command = ["git", "-c", "core.fsmonitor=false", *words]
    try:
        done = subprocess.run(  # noqa: S603  # fixed words
            command,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=SECONDS,
            env=given,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode("utf-8", "replace").strip() if done.returncode == 0 else None
