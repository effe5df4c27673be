"""`verify FOLDER --manifest FILE --sha256 HASH --result FILE`: is the data still what was
published, and how fast does it read?"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluice_train.data.manifest import BadData, Entry, files, load, sha256_of, workers
from sluice_train.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_TOLD = 200
MOST_BYTES = 60_000


def main(argv: Sequence[str]) -> int:
    """0 whatever was found: the result says it. 1: no result could be written."""
    parser = argparse.ArgumentParser(prog="sluice_train.data verify", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--manifest", type=Path, required=True)
    parser.add_argument("--sha256", required=True)
    parser.add_argument("--result", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=0, help="files read at a time")
    given = parser.parse_args(argv)
    try:
        found = verify(given.folder, load(given.manifest, given.sha256), jobs=given.jobs)
    except BadData as bad:
        found = nothing(str(bad))
    found["manifest"] = given.sha256
    try:
        given.result.parent.mkdir(parents=True, exist_ok=True)
        write_whole(given.result, json.dumps(found) + "\n")
    except OSError as error:
        print(f"sluice: {error}", file=sys.stderr)
        return 1
    print(_sentence(found))
    return 0


def nothing(error: str) -> dict[str, Any]:
    """A report of a verification that could not be carried out."""
    kinds: dict[str, Any] = {"changed": [], "missing": [], "extra": []}
    counts = dict.fromkeys(kinds, 0)
    rest = {"files": 0, "bytes_read": 0, "seconds": 0.0, "writable": False, "error": error}
    return {**kinds, "counts": counts, **rest}


def verify(folder: Path, entries: list[Entry], *, jobs: int = 0) -> dict[str, Any]:
    """What differs from the manifest, at most MOST_TOLD paths of a kind, and the speed of reading
    (bytes from disk, seconds by the clock). BadData where the folder cannot be looked at."""
    if not folder.is_dir():
        raise BadData(f"the folder {folder} is not there")
    extra, odd = _beyond(folder, {entry.path for entry in entries})
    changed, missing, read, began = [], [], 0, time.monotonic()
    with ThreadPoolExecutor(workers(jobs)) as pool:
        for entry, (state, size) in zip(entries, pool.map(lambda one: _look(folder, one), entries)):
            read += size
            if state == "changed":
                changed.append(entry.path)
            elif state == "missing":
                missing.append(entry.path)
    seconds = time.monotonic() - began
    kinds = {"changed": changed, "missing": missing, "extra": extra}
    return {
        **{kind: _told(paths) for kind, paths in kinds.items()},
        "counts": {kind: len(paths) for kind, paths in kinds.items()},
        "files": len(entries),
        "bytes_read": read,
        "seconds": round(seconds, 6),
        "writable": os.access(folder, os.W_OK),
        "error": odd,
    }


def _told(paths: list[str]) -> list[str]:
    """As many as a result may hold: what reads it takes no more than 256 KiB."""
    told: list[str] = []
    for path in paths[:MOST_TOLD]:
        told.append(path)
        if sum(len(json.dumps(one)) for one in told) > MOST_BYTES:
            return told[:-1]
    return told


def _beyond(folder: Path, known: set[str]) -> tuple[list[str], str]:
    """Files that the manifest does not list; and what hides the rest, in a sentence."""
    extra = []
    try:
        extra = [path for path, _ in files(folder) if path not in known]
    except BadData as bad:
        return extra, str(bad)
    return sorted(extra), ""


def _look(folder: Path, entry: Entry) -> tuple[str, int]:
    path = os.fspath(folder / entry.path)
    try:
        if os.stat(path).st_size != entry.size:  # noqa: PTH116
            return "changed", 0
        sha256, size = sha256_of(path, drop_cache=True)
    except FileNotFoundError:
        return "missing", 0
    except (OSError, BadData):
        return "changed", 0
    return ("good" if sha256 == entry.sha256 else "changed"), size


def _sentence(found: dict[str, Any]) -> str:
    if found["error"]:
        return f"not verified: {found['error']}"
    counts = ", ".join(f"{count} {kind}" for kind, count in found["counts"].items())
    speed = found["bytes_read"] / max(found["seconds"], 1e-6) / 1e6
    return f"{found['files']} files: {counts}; read at {speed:.0f} MB/s"
