"""Parts on disk: made by who needs them first, mapped into memory.

They lie in `history/columns`, those of one file together. A file of the history never changes, so
they can be deleted at any time.
"""

import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from gateway.history import blocks
from gateway.history.stats.columns import CELLS, MORE, ROWS, Part, made
from gateway.history.stats.pieces import Order

if TYPE_CHECKING:
    Numbers = np.ndarray[Any, Any]

SHAPE = 5  # of a part: another number makes all anew
FOLDER = "columns"
_ORDER = tuple(one.name for one in fields(Order))


class Parts:
    """The parts of files, kept by this process as long as somebody asks for the files."""

    def __init__(self) -> None:
        self._kept: dict[Path, list[Part]] = {}
        self._lock = Lock()

    def of(self, files: Sequence[Path], folder: Path) -> list[Part]:
        """Of all these files; those that are not in `folder` yet are made and put there."""
        with self._lock:
            # A file belongs to the history for as long as a list names it; then it is forgotten.
            self._kept = {file: self._kept.get(file) or _of(file, folder) for file in files}
            return [part for parts in self._kept.values() for part in parts]


def make(files: Iterable[Path], folder: Path) -> None:
    """Have the parts of these files, and no others, on disk."""
    wanted = {_place(file, folder): file for file in files}
    for place, file in wanted.items():
        if _read(place, _mark(file)) is None:
            _keep(place, _mark(file), made(file))
    for old in folder.glob("*"):
        if old not in wanted and not _is_being_written(old):
            old.unlink(missing_ok=True)


def _is_being_written(place: Path) -> bool:
    """What a killed process left is not, after a while."""
    try:
        return place.suffix == ".part" and blocks.age(place) < blocks.KEPT_SECONDS
    except FileNotFoundError:
        return True


def _of(file: Path, folder: Path) -> list[Part]:
    place, mark = _place(file, folder), _mark(file)
    found = _read(place, mark)
    if found is None:
        parts = made(file)
        found = (_read(place, mark) if _keep(place, mark, parts) else None) or parts
    return found


def _place(file: Path, folder: Path) -> Path:
    return folder / f"{file.parent.name}-{file.stem}.columns"


def _mark(file: Path) -> list[int]:
    """What changes when a file of the same name has other rows."""
    facts = file.stat()
    return [SHAPE, facts.st_size, facts.st_mtime_ns]


def _keep(place: Path, mark: list[int], parts: Sequence[Part]) -> bool:
    """Whole or not at all. False: nothing can be written there, and the parts stay in memory."""
    half = place.with_name(f"{secrets.token_hex(6)}.part")
    try:
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with half.open("wb") as file:
            heads = [_head(part) for part in parts]
            head = json.dumps({"mark": mark, "parts": heads}).encode()
            file.write(len(head).to_bytes(8, "little") + head)
            file.write(b"\0" * (-file.tell() % 8))
            for part in parts:
                orders = [getattr(one, name) for one in part.orders.values() for name in _ORDER]
                for column in (*part.rows.values(), *part.cells.values(), *orders):
                    file.write(column.tobytes())
        # A name on half a file would not be seen: its head and its length may both be right.
        blocks.to_disk(half)
        half.replace(place)
    except OSError:
        half.unlink(missing_ok=True)
        return False
    return True


def _head(part: Part) -> dict[str, object]:
    return {
        "rows": len(part.rows["submit"]),
        "cells": len(part.cells["rows"]),
        "more": [name for name in part.rows if name not in ROWS],
        "orders": {name: len(order.n) for name, order in part.orders.items()},
        "texts": dict(part.texts),
    }


def _read(place: Path, mark: list[int]) -> list[Part] | None:
    """None where it is not there, or is of another file, or of other code."""
    try:
        with place.open("rb") as file:
            size = int.from_bytes(file.read(8), "little")
            head = json.loads(file.read(size))
        if head["mark"] != mark:
            return None
        mapped = np.asarray(np.memmap(place, dtype="<i4", mode="r"))
        at = (8 + size + (-(8 + size) % 8)) // 4
        found = []
        for one in head["parts"]:
            part, at = _mapped(mapped, at, one)
            found.append(part)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if at == len(mapped) else None


def _mapped(mapped: "Numbers", at: int, head: Mapping[str, Any]) -> tuple[Part, int]:
    def take(many: int, kind: str = "<i4") -> "Numbers":
        nonlocal at
        begin, at = at, at + many * np.dtype(kind).itemsize // mapped.itemsize
        found: Numbers = mapped[begin:at].view(kind)
        return found

    kinds = ROWS | {name: MORE[name] for name in head["more"]}
    rows = {name: take(head["rows"], kind) for name, kind in kinds.items()}
    cells = {name: take(head["cells"]) for name in CELLS}
    orders = {
        name: Order(
            values=take(head["rows"]),
            cell=take(many),
            bucket=take(many),
            n=take(many),
            sums=take(head["cells"], "<i8"),
        )
        for name, many in head["orders"].items()
    }
    return Part(rows, cells, head["texts"], orders), at
