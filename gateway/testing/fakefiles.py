"""Files of FakeBroker: a dictionary, with owners, links and FIFOs."""

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from gateway.broker.files import MAX_CHUNK_BYTES, chunk
from gateway.core import recipe_code
from gateway.errors import BrokerRefused
from gateway.wire import messages as m

EVERYONES = "*"


@dataclass(slots=True)
class FakeFiles:
    """`owners` names the owner of each file and folder; nobody else may touch it. What is
    EVERYONES can be read by all and written by nobody."""

    areas: tuple[str, ...] = ("/home", "/datasets", "/volumes", "/archive")
    owners: dict[str, str] = field(default_factory=lambda: {"/etc/shadow": "root", "/etc": "root"})
    contents: dict[str, bytes] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    fifos: set[str] = field(default_factory=set)
    folders: set[str] = field(default_factory=lambda: {"/etc"})

    def add_home(self, user: str) -> None:
        self.add_folder(f"/home/{user}", user)

    def add_folder(self, path: str, owner: str) -> None:
        self.folders.add(path)
        self.owners[path] = owner

    def write(self, path: str, owner: str, text: str) -> None:
        self.contents[path] = text.encode()
        self.owners[path] = owner

    def append(self, path: str, owner: str, text: str) -> None:
        self.contents[path] = self.contents.get(path, b"") + text.encode()
        self.owners[path] = owner

    def read(self, user: str, request: m.ReadFileRequest) -> m.FileChunk:
        real = self._resolve(user, request.path)
        if real in self.fifos or real in self.folders:
            raise BrokerRefused(real, code="file_not_regular")
        if not self._inside(real):
            raise BrokerRefused(real, code="file_outside")
        if real not in self.contents:
            raise BrokerRefused(real, code="file_missing")
        if self.owners.get(real) not in {user, EVERYONES}:
            raise BrokerRefused(real, code="file_not_permitted")
        raw, offset = self.contents[real], request.offset
        start = max(0, len(raw) + offset) if offset < 0 else offset
        end = start + max(1, min(request.max_bytes, MAX_CHUNK_BYTES))
        return m.FileChunk(**chunk(raw[start:end], start, len(raw), cut=offset < 0))

    def look(self, user: str, path: str) -> m.FolderState:
        if path == "~" or path.startswith("~/"):
            path = f"/home/{user}{path[1:]}"
        if not path.startswith("/"):
            return m.FolderState(path, "missing", writable=False)
        real = self.links.get(path, path)
        if real not in self.folders:
            parent = posixpath.dirname(real)
            hidden = self.owners.get(parent, user) not in {user, EVERYONES}
            known = real in self.contents
            problem = "not_permitted" if hidden else "not_a_folder" if known else "missing"
            return m.FolderState(path, problem, writable=False)
        if not self._inside(real):
            return m.FolderState(real, "outside", writable=False)
        owner = self.owners.get(real)
        if owner not in {user, EVERYONES}:
            return m.FolderState(real, "not_permitted", writable=False)
        return m.FolderState(real, None, writable=owner == user)

    def list(self, user: str, request: m.ListFolderRequest, *, now: datetime) -> m.FolderList:
        real = self._resolve(user, request.path)
        if real in self.contents or real in self.fifos:
            raise BrokerRefused(real, code="folder_not_a_folder")
        if not self._inside(real):
            raise BrokerRefused(real, code="file_outside")
        entries = self._entries(real, now)
        if real not in self.folders and not entries:
            raise BrokerRefused(real, code="file_missing")
        if self.owners.get(real, user) not in {user, EVERYONES}:
            raise BrokerRefused(real, code="file_not_permitted")
        most = max(1, min(request.most, m.MOST_ENTRIES))
        found = [entries[name] for name in sorted(entries)]
        return m.FolderList(real, tuple(found[:most]), cut=len(found) > most)

    def make(self, user: str, path: str, files: Mapping[str, str]) -> str:
        try:
            recipe_code.require(files)
        except ValueError as error:
            raise BrokerRefused(str(error), code="folder_bad_files") from error
        if path.startswith("~/"):
            path = f"/home/{user}{path[1:]}"
        if not path.startswith("/") or posixpath.basename(path) in {"", ".", ".."}:
            raise BrokerRefused(path, code="folder_missing")
        if not self._inside(path):
            raise BrokerRefused(path, code="folder_outside")
        if path in self.folders | self.contents.keys() | self.links.keys():
            raise BrokerRefused(path, code="folder_exists")
        above = posixpath.dirname(path)
        while above not in self.folders and above not in self.areas:
            if above in self.contents:
                raise BrokerRefused(path, code="folder_not_a_folder")
            above = posixpath.dirname(above)
        if self.owners.get(above) != user:
            raise BrokerRefused(path, code="folder_not_permitted")
        for folder in (posixpath.dirname(path), path):
            self.add_folder(folder, user)
        for name, text in files.items():
            self.write(f"{path}/{name}", user, text)
        return path

    def _entries(self, folder: str, now: datetime) -> dict[str, m.FolderEntry]:
        """A file makes the folders above it, as the dictionary has no others."""
        kinds = {
            **dict.fromkeys(self.contents, m.EntryKind.FILE),
            **dict.fromkeys(self.folders, m.EntryKind.FOLDER),
            **dict.fromkeys(self.fifos, m.EntryKind.OTHER),
            **dict.fromkeys(self.links, m.EntryKind.LINK),
        }
        found: dict[str, m.FolderEntry] = {}
        for path, kind in kinds.items():
            if path.startswith(f"{folder}/"):
                name, _, below = path[len(folder) + 1 :].partition("/")
                size = 0 if below else len(self.contents.get(path, b""))
                own = m.EntryKind.FOLDER if below else kind
                found[name] = m.FolderEntry(name, own, size, now)
        return found

    def _resolve(self, user: str, path: str) -> str:
        if not path.startswith("/"):
            raise BrokerRefused(path, code="file_missing")
        real = self.links.get(path, path)
        parent = posixpath.dirname(real)
        if self._inside(real) and self.owners.get(parent, user) not in {user, EVERYONES}:
            raise BrokerRefused(real, code="file_not_permitted")
        return real

    def _inside(self, path: str) -> bool:
        return any(path.startswith(f"{area}/") for area in self.areas)
