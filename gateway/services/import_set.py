"""Import the history of another site or of earlier years as a set: for statistics, never charged.

Repeating it changes nothing; killed anywhere, it leaves what was there before.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gateway.errors import GatewayError
from gateway.history import sets
from gateway.history.importing.keep import Loaded
from gateway.history.importing.load import Given, Glance, glance, load
from gateway.history.importing.spool import STANDARD_INPUT
from gateway.services import ingest
from gateway.store.uow import Begin
from gateway.wire import messages as m

# Keeps rows for a person to look at; answers how many were not kept already.
Keep = Callable[[Sequence[m.HeldRow]], int]
HELD_AS = "imports"  # the cluster of held rows, where nobody named one
_ENDINGS = re.compile(r"(\.(gz|csv|tsv|psv|txt|swf|sacct))+\Z", re.I)


class BadSetName(GatewayError):
    """No set can be called so. The message says what can."""

    code = "bad_set_name"


@dataclass(frozen=True, slots=True)
class SetReport:
    """What came of the rows of a file (`Loaded`). `newly_held`: not kept already."""

    name: str
    loaded: Loaded
    newly_held: int

    @property
    def whole(self) -> bool:
        return self.loaded.ties and self.loaded.cut is None


def name_of(path: str, wanted: str | None) -> str:
    """The set's name: as wanted, else from the file's. Raises BadSetName."""
    if wanted is None and path == STANDARD_INPUT:
        raise BadSetName("what comes from standard input has no name: say --name SET")
    name = wanted or re.sub(r"[^A-Za-z0-9._-]+", "-", _ENDINGS.sub("", Path(path).name))
    if not sets.is_name(name):
        raise BadSetName(
            f"a set cannot be called {name!r}: up to 64 of A-Z a-z 0-9 . _ - and a letter or digit"
            " first. Say --name SET"
        )
    return name


def import_set(given: Given, *, imports: Path, keep: Keep) -> SetReport:
    """Read the file, keep what could not be read, and publish the rows that no set has yet. Of a
    file that ends in the middle, the whole rows are imported. Others that import wait."""
    with sets.changing(imports):
        sets.sweep(imports)
        folder = sets.folder_of(imports, given.source)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        loaded = load(given, folder, sets.files(imports))
        # Texts first: a kill in between leaves them kept, and the next try finds them kept.
        newly = keep([m.HeldRow(raw, f"{given.source}: {why}") for raw, why in loaded.kept])
        if loaded.file is not None:
            sets.publish(imports, _with(given, loaded, imports))
        sets.sweep(imports)
        if not any(folder.iterdir()):
            folder.rmdir()
    return SetReport(given.source, loaded, newly)


def look(given: Given, folder: Path) -> Glance:
    """How the file would be understood; nothing is stored. `folder` is for what that takes."""
    return glance(given, folder)


def hold(rows: Sequence[m.HeldRow], *, begin: Begin, given: Given) -> int:
    """The way to keep rows where there is a database."""
    if not rows:
        return 0
    with begin() as session:
        return ingest.hold(session, rows, cluster=given.cluster or HELD_AS, now=given.now)


def forget(name: str, *, imports: Path) -> bool:
    """Take the set away; False where there is none of this name."""
    with sets.changing(imports):
        return sets.remove(imports, name)


def _with(given: Given, loaded: Loaded, imports: Path) -> sets.ImportedSet:
    """The set with the new file beside those that it has."""
    assert loaded.file is not None
    before = next((one for one in sets.listed(imports) if one.name == given.source), None)
    return sets.ImportedSet(
        name=given.source,
        format=given.kind,
        rows=(before.rows if before else 0) + loaded.stored,
        held=(before.held if before else 0) + loaded.held,
        added_at=given.now,
        files=(*(before.files if before else ()), loaded.file),
    )
