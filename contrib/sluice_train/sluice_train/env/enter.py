"""Enter an overlay: what is installed from here on lies in a folder of one's own.

`enter` prints the virtual environment that the job is to activate. It lies above the environment
that is active, or holds what the snapshot has that was restored.
"""

from __future__ import annotations

import argparse
import os
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sluice_train.env import base as bases
from sluice_train.env import document, overlay, scan, store
from sluice_train.env.errors import FULL, Unusable
from sluice_train.env.overlay import Overlay, State
from sluice_train.env.restore import above, unpacked

if TYPE_CHECKING:
    from collections.abc import Mapping

KEPT_DAYS = 14  # an overlay that nobody entered or saved for so long is cleared away
_JOB = re.compile(r"[0-9]+(_[0-9]+)?")


def enter(environment: Mapping[str, str], name: str) -> Path:
    """The environment to activate, the same one when the job starts again. Unusable: why not."""
    kept = store.Store.of_environment(environment)
    job = environment.get("SLUICE_JOB", "")
    if not _JOB.fullmatch(job):
        raise Unusable(f"SLUICE_JOB {job!r} is no job's key")
    with kept.locked():
        folder = _place(environment, kept)
        _sweep(folder)
        own = Overlay(folder / _folder_name(job))
        if (own.folder / overlay.STATE).exists():
            (own.folder / overlay.STATE).touch()
            return own.env
        store.remove(own.folder)  # of a start that was killed
        try:
            own.folder.mkdir(parents=True, mode=0o700)
            _fill(own, environment, name)
        except BaseException as error:
            store.remove(own.folder)
            if isinstance(error, OSError):
                text = f"{own.folder} cannot be written: {error.strerror}"
                raise Unusable(text, FULL) from error
            raise
    return own.env


def _fill(own: Overlay, environment: Mapping[str, str], name: str) -> None:
    path = environment.get("SLUICE_SNAPSHOT_DOCUMENT")
    if not path:
        base = bases.of_environment(name, environment)
        state = State(base.fields())
    else:
        one = document.load(Path(path))
        base = above(one)
        unpacked(one, Path(path), own.env)
        entries = scan.scan(os.fsencode(own.env))
        origin = str(Path(path).parent.parent / "layers")
        state = State(base.fields(), one.id, origin, one.layers, entries)
    state.made = overlay.make(own.env, base)
    own.write(state)


def _place(environment: Mapping[str, str], kept: store.Store) -> Path:
    """Where the site puts overlays; else beside the snapshots, where all nodes see them."""
    given = environment.get("SLUICE_OVERLAYS", "")
    folder = Path(given) / store.user() if given else kept.root / "overlays"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise Unusable(f"{folder} cannot be made: {error.strerror}", FULL) from error
    return folder


def _folder_name(job: str) -> str:
    """Of one length for all jobs: compiled files hold it, and two of the same must be alike."""
    number, _, element = job.partition("_")
    return f"{number:0>12}-{element:0>8}"


def _sweep(folder: Path) -> None:
    for path in folder.iterdir():
        with suppress(OSError):
            seen = max(one.stat().st_mtime for one in (path, *path.glob(overlay.STATE)))
            if time.time() - seen > KEPT_DAYS * 86400:
                store.remove(path)


def main(argv: list[str]) -> int:
    """Print the environment to activate."""
    parser = argparse.ArgumentParser(prog="sluice_train.env enter")
    parser.add_argument("--base", default="", help="the environment's name in the form")
    given = parser.parse_args(argv[1:])
    print(enter(os.environ, given.base))
    return 0
