"""List, check and drop the snapshots of one's own store."""

from __future__ import annotations

import argparse
import json
import os
import time
from typing import TYPE_CHECKING

from sluice_train.env import document, store
from sluice_train.env.errors import DATA, Unusable
from sluice_train.env.restore import images_of

if TYPE_CHECKING:
    from pathlib import Path

SHORTEST = 6  # characters of an id that are enough where no other begins with them


def main(argv: list[str]) -> int:
    """`list`, `check [ID …]`, `drop ID …`."""
    parser = argparse.ArgumentParser(prog=f"sluice_train.env {argv[0]}")
    parser.add_argument("--json", action="store_true", dest="as_json")
    if argv[0] != "list":
        parser.add_argument("ids", nargs="+" if argv[0] == "drop" else "*", metavar="ID")
    given = parser.parse_args(argv[1:])
    kept = store.Store.of_environment(os.environ)
    if argv[0] == "list":
        return _list(kept, as_json=given.as_json)
    if argv[0] == "check":
        return _check(kept, given.ids)
    with kept.locked():
        for name in given.ids:
            kept.drop(_path(kept, name).stem)
    return 0


def _list(kept: store.Store, *, as_json: bool) -> int:
    lines = kept.index()
    if as_json:
        print(json.dumps(lines))
        return 0
    for line in lines:
        at = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(line["at"]))
        note = document.load(kept.documents / f"{line['id']}.json").raw.get("note", "")
        print(f"{line['id'][:12]}  {at}  {line['bytes'] / 1e6:10,.1f} MB  {line['base']}  {note}")
    return 0


def _check(kept: store.Store, ids: list[str]) -> int:
    """Read all of them again; 65 where one is damaged."""
    damaged = 0
    names = [_path(kept, name) for name in ids] or sorted(kept.documents.glob("*.json"))
    for path in names:
        try:
            images_of(document.load(path), path)
            print(f"{path.stem[:12]}: whole")
        except Unusable as error:
            damaged += 1
            print(f"{path.stem[:12]}: {error}")
    return DATA if damaged else 0


def _path(kept: store.Store, name: str) -> Path:
    """The one document whose id begins so."""
    plain = name.isalnum() and len(name) >= SHORTEST
    found = sorted(kept.documents.glob(f"{name}*.json")) if plain else []
    if len(found) != 1:
        raise Unusable(f"there is no snapshot {name!r}, or more than one begins so", DATA)
    return found[0]
