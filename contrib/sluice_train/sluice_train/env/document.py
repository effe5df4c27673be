"""A snapshot's document: JSON whose SHA-256 is the snapshot's id.

{"format": 1, "user", "at" (seconds since 1970), "job", "note", "parent": id or null,
 "base": {"name", "kind": venv|conda, "path", "python", "fingerprint"},
 "layers": [{"sha256", "bytes" of the image, "content" bytes in it, "files"}], lowest first,
 "added": ["name==version"], "lock": {"pip": [...], "conda": [...], "records": SHA-256}}

A layer is a squashfs image `layers/<sha256>.sqfs`. `.sluice-gone` in its root lists the paths, NUL
between them, that lower layers have and this one does not.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from sluice_train.env.errors import DATA, Unusable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FORMAT = 1
GONE = b".sluice-gone"
LARGEST = 16 * 1024 * 1024  # bytes of a document: a lock of 10,000 packages is a tenth of it
MOST_LAYERS = 64
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Layer:
    """An image: its SHA-256, its size and that of what it holds in bytes, its entries."""

    sha256: str
    bytes: int
    content: int
    files: int


@dataclass(frozen=True)
class Document:
    """What was read; `id` is the SHA-256 of its bytes."""

    id: str
    layers: tuple[Layer, ...]
    base: Mapping[str, str]
    raw: Mapping[str, Any]


def dump(fields: Mapping[str, Any]) -> bytes:
    """The same fields are the same bytes."""
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return text.encode()


def digest(data: bytes) -> str:
    """The id of a document."""
    return hashlib.sha256(data).hexdigest()


def layer_fields(layers: tuple[Layer, ...]) -> list[dict[str, Any]]:
    """As they stand in a document."""
    return [asdict(layer) for layer in layers]


def load(path: Path) -> Document:
    """The document at `documents/<id>.json`. Unusable: not there, not of that id, or none."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise Unusable(f"the snapshot {path} cannot be read: {error.strerror}") from error
    if digest(data) != path.stem:
        raise Unusable(f"the snapshot {path} is damaged: its content has another hash", DATA)
    return parse(data, path.stem)


def parse(data: bytes, name: str) -> Document:
    """Nothing of it is believed: it may be another person's."""
    try:
        raw = json.loads(data)
        assert raw["format"] == FORMAT
        layers = tuple(_layer(one) for one in raw["layers"])
        assert 0 < len(layers) <= MOST_LAYERS
        base = {key: raw["base"][key] for key in ("name", "kind", "path", "python", "fingerprint")}
        assert all(isinstance(value, str) for value in base.values())
        assert base["path"].startswith("/")
    except (ValueError, KeyError, TypeError, AssertionError) as error:
        raise Unusable(f"the snapshot {name} is none that this version understands") from error
    return Document(name, layers, base, raw)


def _layer(one: Mapping[str, Any]) -> Layer:
    sha, numbers = one["sha256"], [one[key] for key in ("bytes", "content", "files")]
    assert isinstance(sha, str)
    assert _DIGEST.fullmatch(sha)
    assert all(type(number) is int and number >= 0 for number in numbers)
    return Layer(sha, *numbers)
