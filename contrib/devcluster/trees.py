"""Cached trees: each is built under another name and renamed when it is complete."""

import contextlib
import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from contrib.devcluster.commands import Say
from contrib.devcluster.paths import GUEST

PARTIAL = ".partial"
# In namespaces of its own, and killed with us: an interrupted build leaves neither a mount nor a
# process that still writes into the cache.
PRIVATE = (
    *("setpriv", "--pdeathsig", "KILL"),
    *("unshare", "-m", "-p", "-f", "--kill-child", "--propagation", "private"),
)


def ensure(tree: Path, build: Callable[[Path], None], say: Say) -> Path:
    """`tree`, built first where it is not there yet. Two callers never build at once."""
    if tree.is_dir():
        return tree
    tree.parent.mkdir(parents=True, exist_ok=True)
    with _lock(tree.parent, say):
        if tree.is_dir():
            return tree
        for left in tree.parent.glob(f"*{PARTIAL}"):  # of a build that was killed
            shutil.rmtree(left)
        partial = tree.with_name(tree.name + PARTIAL)
        try:
            build(partial)
            partial.rename(tree)
        finally:
            if partial.exists():
                shutil.rmtree(partial)
    return tree


def fingerprint(parts: Iterable[str | Path]) -> str:
    """A short hash of texts and of the contents of files."""
    digest = hashlib.sha256()
    for part in parts:
        content = part.read_bytes() if isinstance(part, Path) else part.encode()
        digest.update(len(content).to_bytes(8, "big") + content)
    return digest.hexdigest()[:12]


def inside(
    root: Path, argv: Iterable[str], *, binds: Iterable[tuple[Path, Path]] = ()
) -> list[str | Path]:
    """The command that runs `argv` inside `root`, in namespaces of its own."""
    words: list[str | Path] = [*PRIVATE, "sh", GUEST / "in-tree.sh", root]
    for source, target in binds:
        words += ["--bind", source, target]
    return [*words, "--", *argv]


@contextlib.contextmanager
def _lock(folder: Path, say: Say) -> Iterator[None]:
    handle = os.open(folder / ".lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Another build is at work in the cache: waiting for it")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
