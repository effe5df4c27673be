"""`run … -- WORDS…`: the program and its door, from the start of the job to its end."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from sluice_train.app import address, asked
from sluice_train.app.errors import Unusable
from sluice_train.app.program import adopt_orphans, kill_descendants
from sluice_train.app.session import Session
from sluice_train.app.state import FAILED, State

if TYPE_CHECKING:
    from collections.abc import Sequence

# A Unix socket's path has at most 107 bytes; those of Jupyter's kernels are 55 longer than this.
MOST_PLACE = 45


def main(argv: Sequence[str]) -> int:
    """Run until the program ends or is to end; the job's exit code."""
    adopt_orphans()
    try:
        wanted = asked.read(argv)
    except Unusable as error:
        print(error, file=sys.stderr)
        return error.code
    state = State(idle_seconds=wanted.idle_seconds)
    wanted.folder.mkdir(parents=True, exist_ok=True)
    wanted.folder.chmod(0o700)
    (wanted.folder / "ready.json").unlink(missing_ok=True)
    state.write(wanted.folder)
    try:
        return _run(wanted, state)
    except Unusable as error:
        state.phase, state.text = FAILED, str(error)
        state.write(wanted.folder)
        print(error, file=sys.stderr)
        return error.code
    finally:
        kill_descendants()


def _run(wanted: asked.Asked, state: State) -> int:
    if shutil.which(wanted.words[0]) is None:
        raise Unusable(f"{wanted.words[0]} is not there: the environment has no such program")
    told = address.of_node(os.environ)
    with address.listen(told, wanted.ports) as listener:
        place = Path(tempfile.mkdtemp(prefix="sluice-", dir=_temporary()))  # for us alone: 0700
        try:
            session = Session(wanted, state, listener=listener, address=told, place=place)
            return asyncio.run(session.run())
        finally:
            shutil.rmtree(place, ignore_errors=True)


def _temporary() -> str:
    given = tempfile.gettempdir()
    return given if len(given.encode()) <= MOST_PLACE - len("/sluice-12345678") else "/tmp"  # noqa: S108
