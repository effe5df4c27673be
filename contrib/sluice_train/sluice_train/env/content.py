"""What a file is in a layer: its bytes, without what tells one overlay's folder from another's.

Two overlays with the same packages must make the same layer. Three things name the folder or the
hour: the first line of scripts, what RECORD says of those, and compiled files.
"""

from __future__ import annotations

import os
import re

from sluice_train.env.errors import Changed

PYTHON_LINE = b"#!/usr/bin/env python3\n"
LARGEST = 64 * 1024 * 1024  # bytes; larger files go through as they are, in pieces
_SCRIPT_LINE = re.compile(rb"#!(?P<python>/[^\n]*/bin/python[0-9.]*)[^\n]*\n")
# What installers write where a folder's name is too long, or has a space.
_SCRIPT_TRICK = re.compile(
    rb"#!/bin/sh\n'''exec' \"?(?P<python>/[^\n\"]*/bin/python[0-9.]*)\"? \"\$0\" \"\$@\"\n' '''\n"
)
_HEADER = 16  # bytes before the code of a .pyc
_CHECKED = (3).to_bytes(4, "little")


def script_python(head: bytes) -> tuple[bytes, int] | None:
    """The Python that a script's first lines name, and how long these are; None: it is none."""
    found = _SCRIPT_TRICK.match(head) or _SCRIPT_LINE.match(head)
    return (found["python"], found.end()) if found else None


def is_compiled(path: bytes) -> bool:
    """A compiled file beside its source."""
    return path.endswith(b".pyc") and path.split(b"/")[-2:-1] == [b"__pycache__"]


def is_special(path: bytes) -> bool:
    """Whether it may have other bytes in a layer."""
    is_record = path.endswith(b".dist-info/RECORD")
    return path.startswith(b"bin/") or is_record or is_compiled(path)


def normal(path: bytes, data: bytes, env: bytes) -> bytes:
    """The bytes for the layer of a script or a RECORD; `env` is the overlay's folder."""
    if path.startswith(b"bin/"):
        found = script_python(data[:2048])
        if found and found[0].startswith(env + b"/"):
            return PYTHON_LINE + data[found[1] :]
        return data
    if path.endswith(b".dist-info/RECORD"):
        return b"".join(_unhashed(line) for line in data.splitlines(keepends=True))
    return data


def _unhashed(line: bytes) -> bytes:
    if not line.startswith(b"../"):
        return line
    name, end = line.split(b",", 1)[0], line[len(line.rstrip(b"\r\n")) :]
    return name + b",," + end


def compiled(data: bytes, source: bytes, stat: os.stat_result, env: bytes) -> bytes | None:
    """A .pyc that is valid by its source's content, and not by its time; None: it is stale.

    Python puts the right file name into the code when it loads it, so the folder in there can be
    any of the same length.
    """
    import _imp  # noqa: PLC0415  # the hash with any version's number, which importlib has not

    flags = int.from_bytes(data[4:8], "little")
    if len(data) < _HEADER or flags & ~3:
        return None
    hashed = _imp.source_hash(int.from_bytes(data[:4], "little"), source)
    if flags == 0:
        seconds, size = (int.from_bytes(data[at : at + 4], "little") for at in (8, 12))
        if seconds != int(stat.st_mtime) & 0xFFFFFFFF or size != stat.st_size & 0xFFFFFFFF:
            return None
    elif data[8:16] != hashed:
        return None
    blank = b"/" + b"_" * (len(env) - 1)
    return data[:4] + _CHECKED + hashed + data[_HEADER:].replace(env, blank)


def same(path: bytes, before: os.stat_result, after: os.stat_result) -> None:
    """Raises Changed where the file was written to in between."""
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise Changed(os.fsdecode(path))
