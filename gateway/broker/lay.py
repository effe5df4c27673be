"""A new folder with files, made as the person it is for: whole, or not at all."""

import contextlib
import errno
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from gateway.broker.accounts import Account
from gateway.broker.person import as_person
from gateway.core import recipe_code
from gateway.errors import BrokerRefused
from gateway.wire.folders import MadeFolder, MakeFolder

_CODES = {
    errno.EACCES: "folder_not_permitted",
    errno.EPERM: "folder_not_permitted",
    errno.EROFS: "folder_not_permitted",
    errno.ENOSPC: "folder_no_room",
    errno.EDQUOT: "folder_no_room",
    errno.EEXIST: "folder_exists",
    errno.ENOTEMPTY: "folder_exists",
    errno.ENOTDIR: "folder_not_a_folder",
}
_FOLDER, _FILE, _PROGRAM = 0o755, 0o644, 0o755


def lay(
    account: Account, asked: MakeFolder, inside: Callable[[str], bool], *, timeout_seconds: float
) -> MadeFolder:
    """Refused: folder_exists, folder_outside, folder_not_permitted, folder_no_room,
    folder_not_a_folder, folder_missing, folder_bad_files."""
    try:
        recipe_code.require(asked.files)
    except ValueError as error:
        raise BrokerRefused(str(error), code="folder_bad_files") from error
    path = asked.path
    if path.startswith("~/"):
        path = account.home + path[1:]
    name = Path(path).name
    if not path.startswith("/") or "\0" in path or name in {"", ".", ".."}:
        raise BrokerRefused(asked.path, code="folder_missing")

    def work() -> str:
        try:
            return _lay(Path(path), asked.files, inside)
        except OSError as error:
            code = _CODES.get(error.errno or 0, "folder_missing")
            raise BrokerRefused(f"{asked.path}: {error.strerror}", code=code) from error

    return MadeFolder(as_person(account, work, timeout_seconds=timeout_seconds))


def _lay(path: Path, files: Mapping[str, str], inside: Callable[[str], bool]) -> str:
    """Beside its place under another name first, so that a kill leaves no half of it there."""
    os.umask(0o022)
    if not inside(f"{os.path.realpath(path.parent)}/{path.name}"):
        raise BrokerRefused(str(path), code="folder_outside")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise NotADirectoryError(errno.ENOTDIR, "a file is in its way") from error
    parent = Path(os.path.realpath(path.parent))
    if os.path.lexists(parent / path.name):
        raise BrokerRefused(str(path), code="folder_exists")
    aside = parent / f".{path.name[:200]}.new-{os.getpid()}"
    aside.mkdir(_FOLDER)
    try:
        for folder in sorted(recipe_code.folders(files)):
            (aside / folder).mkdir(_FOLDER)
        for name, text in files.items():
            _write(aside / name, text)
        aside.rename(parent / path.name)
    except BaseException:
        with contextlib.suppress(OSError):
            shutil.rmtree(aside)
        raise
    return str(parent / path.name)


def _write(path: Path, text: str) -> None:
    mode = _PROGRAM if text.startswith("#!") else _FILE
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(handle)
