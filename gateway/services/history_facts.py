"""What the columnar job history holds."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from gateway.history import blocks, reading, sets
from gateway.store import history
from gateway.store.uow import Begin


@dataclass(frozen=True, slots=True)
class Known:
    """What is there of our own jobs, in `files` files of `blocks` blocks. `made_at` None: there is
    no history. `to_make`: blocks that are behind the database. `sets` are imported."""

    runs: int
    never_started: int
    waiting: int
    blocks: int
    files: int
    bytes: int
    to_make: int
    made_at: datetime | None
    sets: Sequence[sets.ImportedSet]


def known(folder: Path, *, read: Begin | None) -> Known:
    """Of the history in `folder` ($SLUICE_HOME/history); `read` None: there is no database. Raises
    sets.BrokenSets."""
    manifest = blocks.load(folder)
    imported = sets.listed(folder.parent / sets.FOLDER)
    to_make = 0
    if read is not None:
        with read() as session:
            to_make = len(history.marks(session) if manifest else history.blocks(session))
    if manifest is None:
        return Known(0, 0, 0, 0, 0, 0, to_make, None, imported)
    files = blocks.files(folder)
    with reading.runs(folder) as connection:
        runs, never, waiting = connection.execute(_COUNTS).fetchone() or (0, 0, 0)
    return Known(
        runs=int(runs),
        never_started=int(never),
        waiting=int(waiting),
        blocks=len(manifest.files),
        files=len(files),
        bytes=sum(file.stat().st_size for file in files),
        to_make=to_make,
        made_at=manifest.made_at,
        sets=imported,
    )


_COUNTS = """
SELECT count(start_time), count(end_time) FILTER (start_time IS NULL),
    count(*) FILTER (start_time IS NULL AND end_time IS NULL)
FROM waits WHERE source IS NULL
"""
