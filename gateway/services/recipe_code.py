"""Code that goes with a recipe: captured from its author's folder, laid into a folder of who
clones. Both as the person, through the broker."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from gateway.brokerclient.port import Broker
from gateway.core import recipe_code as core
from gateway.core.access import Viewer
from gateway.core.runfolder import FOLDER as RUNS
from gateway.errors import BrokerRefused, NotFound, Refused
from gateway.store import recipe_code as store
from gateway.store import recipes
from gateway.store.uow import Begin
from gateway.wire.messages import EntryKind, FolderEntry

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

MOST_FOLDERS = 60
# Other people's code, that an environment or a list of packages stands for.
_PACKAGES = frozenset({"__pycache__", "node_modules", "site-packages", "venv", "env"})
_RESULTS = frozenset({RUNS, "checkpoints", "logs", "outputs", "runs", "mlruns", "wandb"})
_PASSED_OVER = _PACKAGES | _RESULTS


@dataclass(slots=True)
class Captured:
    """`left_out`: paths that stay behind; `newer`: files that have changed since the run began."""

    files: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    newer: list[str] = field(default_factory=list)

    @property
    def digest(self) -> str:
        return core.digest(self.files)

    @property
    def bytes(self) -> int:
        return core.size(self.files)


def capture(folder: str, *, viewer: Viewer, broker: Broker, since: datetime | None) -> Captured:
    """The files of text below it as they are now. Refused `recipe_code_large` with the limits,
    `recipe_code_empty`, or as the broker says."""
    found = _Capture(broker, viewer.unix_user, since)
    try:
        found.walk(folder)
    except BrokerRefused as error:
        raise Refused(error.code, field="code") from error
    if not found.done.files:
        raise Refused("recipe_code_empty", field="code")
    return found.done


class _Capture:
    """One look. A whole folder is taken or none: half of a program is of no use."""

    def __init__(self, broker: Broker, user: str, since: datetime | None) -> None:
        self._broker, self._user, self._since = broker, user, since
        self._folders = self._bytes = 0
        self.done = Captured()

    def walk(self, folder: str, below: str = "") -> None:
        self._folders += 1
        if self._folders > MOST_FOLDERS or below.count("/") >= core.DEEPEST:
            raise _too_large()
        found = self._broker.list_folder(folder, user=self._user)
        if found.cut:
            raise _too_large()
        for entry in found.entries:
            self._entry(f"{folder.rstrip('/')}/{entry.name}", below + entry.name, entry)

    def _entry(self, path: str, name: str, entry: FolderEntry) -> None:
        if not entry.exact or not entry.name.isprintable():
            self.done.left_out.append(name)
        elif entry.kind is EntryKind.FOLDER:
            if entry.name in _PASSED_OVER or entry.name.startswith("."):
                self.done.left_out.append(f"{name}/")
            else:
                self.walk(path, f"{name}/")
        elif not self._file(path, name, entry):
            self.done.left_out.append(name)

    def _file(self, path: str, name: str, entry: FolderEntry) -> bool:
        """False: it stays behind."""
        if entry.kind is not EntryKind.FILE or not core.is_code(entry.name):
            return False
        if entry.size > core.LARGEST_FILE:
            return False
        text = self._text(path)
        if text is None or core.is_private(text):
            return False
        self._bytes += len(text.encode())
        if len(self.done.files) == core.MOST_FILES or self._bytes > core.LARGEST:
            raise _too_large()
        self.done.files[name] = text
        if self._since is not None and entry.modified_at > self._since:
            self.done.newer.append(name)
        return True

    def _text(self, path: str) -> str | None:
        """None: no UTF-8, or longer than when it was listed."""
        try:
            chunk = self._broker.read_file(
                path, user=self._user, offset=0, max_bytes=core.LARGEST_FILE + 1
            )
        except BrokerRefused:
            return None
        whole = chunk.next_offset >= chunk.size and chunk.size <= core.LARGEST_FILE
        return chunk.text if whole and not {"\ufffd", "\0"} & set(chunk.text) else None


def _too_large() -> Refused:
    return Refused(
        "recipe_code_large",
        field="code",
        files=core.MOST_FILES,
        kib=core.LARGEST // 1024,
        folders=MOST_FOLDERS,
    )


def files(session: "Session", recipe_id: int, viewer: Viewer) -> Mapping[str, str]:
    """Of a recipe that this person may see. NotFound: none, or none with code."""
    row = recipes.get(session, recipe_id, viewer)
    if row is None or row.recipe.code is None or not row.recipe.code.captured:
        raise NotFound(f"no code of recipe {recipe_id}")
    return store.get(session, row.recipe.code.captured)


def lay(recipe_id: int, folder: str, *, viewer: Viewer, begin: Begin, broker: Broker) -> str:
    """Its files in a new folder of this person's; the real path. Refused with field `folder`."""
    with begin() as session:
        found = files(session, recipe_id, viewer)
    try:
        return broker.make_folder(folder, found, user=viewer.unix_user)
    except BrokerRefused as error:
        raise Refused(error.code, field="folder") from error
