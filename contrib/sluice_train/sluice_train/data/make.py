"""`manifest FOLDER [--output FILE]`: hash every file, several at a time; killed, it goes on where
it was."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluice_train.data.manifest import BadData, Entry, dump, files, sha256_of, workers
from sluice_train.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str]) -> int:
    """0 and the manifest's hash on stdout; 1 where the folder holds what a dataset cannot."""
    parser = argparse.ArgumentParser(prog="sluice_train.data manifest", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--output", type=Path, help="default: FOLDER.manifest")
    parser.add_argument("--jobs", type=int, default=0, help="files read at a time")
    parser.add_argument("--result", type=Path, help="where its hash and sums go, as JSON")
    given = parser.parse_args(argv)
    folder = given.folder.absolute()
    output = given.output or folder.with_name(f"{folder.name}.manifest")
    try:
        text = make(folder, output.with_name(f"{output.name}.part"), jobs=given.jobs)
        write_whole(output, text)
        output.with_name(f"{output.name}.part").unlink(missing_ok=True)
        found = _sums(text)
        if given.result:
            given.result.parent.mkdir(parents=True, exist_ok=True)
            write_whole(given.result, json.dumps(found) + "\n")
    except (BadData, OSError) as error:
        print(f"sluice: {error}", file=sys.stderr)
        return 1
    print(f"{found['sha256']} {found['bytes']} bytes, {found['files']} files: {output}")
    return 0


def _sums(text: str) -> dict[str, Any]:
    lines = text.split("\n")[:-1]
    size = sum(int(line.split(" ", 2)[1]) for line in lines)
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    return {"sha256": sha256, "bytes": size, "files": len(lines)}


def make(folder: Path, part: Path, *, jobs: int = 0) -> str:
    """The manifest's text. `part` remembers what is hashed already, with size and time of change:
    a file that has changed since is read again."""
    if not folder.is_dir():
        raise BadData(f"{folder} is no folder")
    found = dict(files(folder))
    if not found:
        raise BadData(f"{folder} holds no file")
    known = _known(part, found)
    left = sorted(path for path in found if path not in known)
    kept = [_noted(known[path], found[path]) for path in sorted(known)]
    write_whole(part, "".join(kept))  # without the torn line that a kill may have left
    with part.open("a", encoding="utf-8") as log, ThreadPoolExecutor(workers(jobs)) as pool:
        hashed = pool.map(lambda path: (path, sha256_of(os.fspath(folder / path))), left)
        for path, (sha256, size) in hashed:
            if size != found[path].st_size:
                raise BadData(f"{path!r} changed while it was read")
            known[path] = Entry(sha256, size, path)
            log.write(_noted(known[path], found[path]))
            log.flush()
    return dump(list(known.values()))


def _noted(entry: Entry, seen: os.stat_result) -> str:
    return f"{entry.sha256} {entry.size} {seen.st_mtime_ns} {entry.path}\n"


def _known(part: Path, found: dict[str, os.stat_result]) -> dict[str, Entry]:
    known: dict[str, Entry] = {}
    try:
        lines = part.read_text(encoding="utf-8").split("\n")[:-1]  # a torn last line is none
    except (FileNotFoundError, UnicodeDecodeError):
        return known
    for line in lines:
        sha256, size, changed, path = [*line.split(" ", 3), "", "", ""][:4]
        here = found.get(path)
        if here is not None and (size, changed) == (str(here.st_size), str(here.st_mtime_ns)):
            known[path] = Entry(sha256, here.st_size, path)
    return known
