"""A history file as plain text that can be read at several places at once."""

import io
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from gateway.errors import GatewayError

STANDARD_INPUT = "-"
GZIP = b"\x1f\x8b"
_UTF_16 = frozenset({b"\xff\xfe", b"\xfe\xff"})
_BLOCK = 4 * 2**20
_GIVEN = "given.txt"
_LONGEST_LINE = 64 * 2**20
_CUT = "the compressed file ends in the middle"


class UnreadableFile(GatewayError):
    """The file cannot be opened or read. The message says why."""

    code = "unreadable_file"


@dataclass(frozen=True, slots=True)
class Spooled:
    """UTF-8 text with one kind of line end at `path`; `cut` says why not all of it is there. Then
    the line in which it ends is `rest` alone: how much of it is missing nobody knows."""

    path: Path
    cut: str | None = None
    rest: str = ""


def spool(given: str, folder: Path) -> Spooled:
    """The file itself where it can be read as it is, else a copy in `folder`: of standard input,
    of what gzip packed, of text with bytes that are no UTF-8 (written as \\xNN), with NUL, or with
    both kinds of line ends. Raises UnreadableFile."""
    try:
        if given == STANDARD_INPUT:
            stream = cast(io.RawIOBase, sys.stdin.buffer)
            return _copied(io.BufferedReader(stream), folder / _GIVEN)
        with Path(given).open("rb") as raw:
            if raw.peek(2)[:2] != GZIP and _is_plain(raw):
                # A link: DuckDB would take [ and * in a name for a pattern.
                (folder / _GIVEN).symlink_to(Path(given).resolve())
                return Spooled(folder / _GIVEN)
            raw.seek(0)
            return _copied(raw, folder / _GIVEN)
    except OSError as error:
        raise UnreadableFile(f"{given}: {error}") from error


def _is_plain(raw: BinaryIO) -> bool:
    lines = windows = 0
    rest = b""
    while block := raw.read(_BLOCK):
        text, rest = _whole(rest + block)
        if b"\0" in text or not _is_utf8(text):
            return False
        lines += text.count(b"\n")
        windows += text.count(b"\r\n")
    return _is_utf8(rest) and windows in {0, lines + rest.count(b"\n")}


def _is_utf8(text: bytes) -> bool:
    if text.isascii():
        return True
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _whole(text: bytes) -> tuple[bytes, bytes]:
    """The whole lines, and what is behind them: no character and no line end is torn."""
    end = text.rfind(b"\n") + 1
    if len(text) - end > _LONGEST_LINE:
        raise UnreadableFile("no line ends in it: this is no list of jobs")
    return text[:end], text[end:]


def refuse_utf_16(raw: io.BufferedReader) -> None:
    """OSError: nothing in it stands where we look for it, and what we would say of its first line
    helps nobody."""
    if raw.peek(2)[:2] in _UTF_16:
        raise OSError("it is text in UTF-16, as PowerShell writes it: save it as UTF-8")


def _copied(raw: io.BufferedReader, path: Path) -> Spooled:
    refuse_utf_16(raw)
    packed, cut = raw.peek(2)[:2] == GZIP, None
    rest = b""
    with path.open("wb") as copy:
        try:
            for block in unpacked(raw) if packed else blocks(raw):
                text, rest = _whole(rest + block)
                copy.write(_plain(text))
        except (EOFError, zlib.error) as error:
            cut = f"{_CUT} ({error})" if str(error) else _CUT
        if cut is None:
            copy.write(_plain(rest))
        elif not copy.tell():
            raise UnreadableFile(f"{cut}, before its first line does")
    return Spooled(path, cut, "" if cut is None else _plain(rest).decode())


def blocks(raw: BinaryIO) -> Iterator[bytes]:
    while block := raw.read(_BLOCK):
        yield block


def unpacked(raw: BinaryIO) -> Iterator[bytes]:
    """Raises EOFError at the end of a cut file, after all that it held: gzip's own reader would
    keep the last part."""
    open_member = False
    for block in blocks(raw):
        data = block
        while data:
            if not open_member:
                if not data.strip(b"\0"):
                    break  # filling behind the last member
                machine, open_member = zlib.decompressobj(zlib.MAX_WBITS | 16), True
            yield from _inflated(machine, data)
            open_member, data = not machine.eof, machine.unused_data
    if open_member:
        raise EOFError


def _inflated(machine: "zlib._Decompress", data: bytes) -> Iterator[bytes]:
    """All that comes before a broken byte, then zlib.error: zlib itself tells nothing of a call in
    which it met one. `machine` is of no use after that."""
    before = machine.copy()
    try:
        whole = machine.decompress(data)
    except zlib.error:
        if len(data) == 1:
            raise
        middle = len(data) // 2
        # The halves go into one machine: where the first is whole, it is there afterwards.
        yield from _inflated(before, data[:middle])
        yield from _inflated(before, data[middle:])
    else:
        yield whole


def _plain(text: bytes) -> bytes:
    if not _is_utf8(text):
        text = text.decode("utf-8", "backslashreplace").encode()
    if b"\0" in text:
        text = text.replace(b"\0", "\ufffd".encode())
    return text.replace(b"\r\n", b"\n")
