"""The text of a history file, compressed or not, and whether its end is there."""

import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from gateway.history.importing.spool import (
    GZIP,
    STANDARD_INPUT,
    blocks,
    refuse_utf_16,
    unpacked,
)

CUT = "the compressed file ends in the middle"


@dataclass(slots=True)
class Text:
    """`cut` is set once the end is reached, where it is missing; `unended`: the last line has no
    line end. `rest`: the torn line of a cut file, which is no line of `lines`."""

    stream: io.TextIOWrapper
    _blocks: "_Blocks"
    unended: bool = False
    rest: str = ""
    cut: str | None = field(default=None)

    def lines(self) -> Iterator[str]:
        """Without their ends. A lone CR ends no line: it may be part of a job's name."""
        for line in self.stream:
            # No database takes a NUL in a text.
            text = line.replace("\0", "\ufffd") if "\0" in line else line
            if not text.endswith("\n"):
                self.unended = True
                if self.ended_early():
                    self.rest = text
                    return
            yield text.removesuffix("\n")
        self.ended_early()

    def ended_early(self) -> bool:
        self.cut = CUT if self._blocks.cut else None
        return self._blocks.cut


@contextmanager
def opened(path: str, *, errors: str) -> Iterator[Text]:
    """The file, or standard input; `errors` is for bytes that are no UTF-8. Raises OSError."""
    given = sys.stdin.fileno() if path == STANDARD_INPUT else Path(path)
    with open(given, "rb") as raw:  # noqa: PTH123  # a number is no path
        refuse_utf_16(raw)
        machine = _Blocks(raw, packed=raw.peek(2)[:2] == GZIP)
        stream = io.TextIOWrapper(io.BufferedReader(machine), "utf-8", errors, newline="\n")
        yield Text(stream, machine)


class _Blocks(io.RawIOBase):
    """Bytes as they are unpacked, up to where a cut file ends."""

    def __init__(self, raw: BinaryIO, *, packed: bool) -> None:
        self._blocks = unpacked(raw) if packed else blocks(raw)
        self._rest = memoryview(b"")
        self.cut = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "memoryview") -> int:  # type: ignore[override]
        while not self._rest:
            try:
                self._rest = memoryview(next(self._blocks))
            except StopIteration:
                return 0
            except (EOFError, zlib.error):
                self.cut = True
                self._blocks = iter(())
                return 0
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size
