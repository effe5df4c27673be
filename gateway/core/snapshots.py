"""Snapshots of what people added to an environment: their documents, and who may use them.

A document comes from its owner's own folder, so nothing of it is believed beyond its shape: the
hash of its bytes is its id, and it counts only for the account that it names
(docs/engineering/workbench.md).
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from hashlib import sha256
from typing import Any

from gateway.core.access import Permission, Viewer
from gateway.core.environments import OWN, Environment, EnvironmentKind

FORMAT = 1
LARGEST_DOCUMENT = 4 * 1024 * 1024  # bytes
LARGEST_INDEX = 1024 * 1024  # bytes: some 5,000 snapshots
PREFIX = "snapshot:"  # in a form: snapshot:<first 12 digits>
SHORT = 12
LONGEST_NAME, LONGEST_NOTE = 80, 500
_MOST_LAYERS, _MOST_PACKAGES, _MOST = 64, 20_000, 2**53
_DIGEST = re.compile(r"[0-9a-f]{64}")
_PATH = re.compile(r"/[^\0\n]*")
_LATEST = datetime(2200, 1, 1, tzinfo=UTC).timestamp()


class Shared(StrEnum):
    """With whom. ASKED: with the site, once an administrator agrees."""

    NONE = "none"
    GROUP = "group"
    ASKED = "asked"
    SITE = "site"


class Doubt(StrEnum):
    """What speaks against a snapshot's base as it is now."""

    GONE = "snapshot_base_gone"  # it is not offered any more
    MOVED = "snapshot_base_moved"  # the name means another folder or kind
    CHANGED = "snapshot_base_changed"  # its packages are others


@dataclass(frozen=True, slots=True)
class Layer:
    """An image in the owner's store; `content` bytes are in it, `bytes` long is it itself."""

    sha256: str
    bytes: int
    content: int
    files: int


@dataclass(frozen=True, slots=True)
class Base:
    """The environment below, as it was when the snapshot was saved."""

    name: str
    kind: str
    path: str
    python: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Document:
    """`added` are the packages above the base, `packages` all of them, as pip freeze writes
    them."""

    user: str
    at: datetime
    job: str
    note: str
    base: Base
    layers: tuple[Layer, ...]
    added: tuple[str, ...]
    packages: tuple[str, ...]
    conda: tuple[str, ...]
    parent: str | None

    @property
    def bytes(self) -> int:
        return sum(layer.bytes for layer in self.layers)

    @property
    def content(self) -> int:
        return sum(layer.content for layer in self.layers)


class BadDocument(ValueError):
    """It is none, or of another account."""


def index_ids(text: str) -> dict[str, bool]:
    """The ids of an index.jsonl with what each says of being reachable; other lines are passed
    over."""
    found = {}
    for line in text.splitlines():
        try:
            one = json.loads(line)
            name = one["id"]
        except (ValueError, TypeError, KeyError, RecursionError):
            continue
        if isinstance(name, str) and _DIGEST.fullmatch(name):
            found[name] = one.get("reachable") is True
    return found


def parse(data: bytes, digest: str, *, user: str) -> Document:
    """The document of that hash and that account. Raises BadDocument."""
    if len(data) > LARGEST_DOCUMENT or sha256(data).hexdigest() != digest:
        raise BadDocument(digest)
    try:
        raw = json.loads(data)
        if raw["format"] != FORMAT or raw["user"] != user:
            raise BadDocument(digest)
        return _document(raw)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise BadDocument(digest) from error


def dump(document: Document) -> dict[str, Any]:
    """For the database; `load` reads it."""
    return asdict(document) | {"at": document.at.timestamp()}


def load(raw: Mapping[str, Any]) -> Document:
    """The inverse of `dump`."""
    return Document(
        user=raw["user"],
        at=datetime.fromtimestamp(raw["at"], UTC),
        job=raw["job"],
        note=raw["note"],
        base=Base(**raw["base"]),
        layers=tuple(Layer(**one) for one in raw["layers"]),
        added=tuple(raw["added"]),
        packages=tuple(raw["packages"]),
        conda=tuple(raw["conda"]),
        parent=raw["parent"],
    )


def _document(raw: Mapping[str, Any]) -> Document:
    layers = tuple(_layer(one) for one in raw["layers"])
    if not 0 < len(layers) <= _MOST_LAYERS or not 0 <= raw["at"] <= _LATEST:
        raise ValueError
    lock, base = raw["lock"], raw["base"]
    names = ("name", "kind", "path", "python", "fingerprint")
    if not _PATH.fullmatch(base["path"]):
        raise ValueError
    parent = raw["parent"]
    return Document(
        user=raw["user"],
        at=datetime.fromtimestamp(int(raw["at"]), UTC),
        job=_text(raw["job"], 40),
        note=_text(raw["note"], LONGEST_NOTE),
        base=Base(**{name: _text(base[name], 1000) for name in names}),
        layers=layers,
        added=_texts(raw["added"]),
        packages=_texts(lock["pip"]),
        conda=_texts(lock["conda"]),
        parent=parent if isinstance(parent, str) and _DIGEST.fullmatch(parent) else None,
    )


def _layer(raw: Mapping[str, Any]) -> Layer:
    numbers = [raw[key] for key in ("bytes", "content", "files")]
    if not _DIGEST.fullmatch(raw["sha256"]) or not all(
        type(number) is int and 0 <= number <= _MOST for number in numbers
    ):
        raise ValueError
    return Layer(raw["sha256"], *numbers)


def _text(value: str, most: int) -> str:
    if len(value) > most or not value.isprintable():
        raise ValueError
    return value


def _texts(values: Sequence[str]) -> tuple[str, ...]:
    if not isinstance(values, list) or len(values) > _MOST_PACKAGES:
        raise ValueError
    return tuple(_text(value, 200) for value in values)


@dataclass(frozen=True, slots=True)
class Rights:
    """What a viewer may do with a snapshot. Without `use` they may not know of it."""

    use: bool
    own: bool  # rename, share, take back, delete
    agree: bool  # to its being the site's, or take that back


def rights(viewer: Viewer, *, person_id: int, shared: Shared, group: str | None) -> Rights:
    """The owner may all but agree; an administrator sees what is, or shall be, the site's."""
    own = viewer.person_id == person_id
    steers = viewer.may(Permission.MANAGE_ENVIRONMENTS)
    with_us = shared is Shared.GROUP and group in viewer.groups
    agree = steers and shared in (Shared.ASKED, Shared.SITE)
    return Rights(own or with_us or agree or shared is Shared.SITE, own, agree)


def doubts(
    base: Base, environments: Iterable[Environment], fingerprint: str | None
) -> tuple[Doubt, ...]:
    """What has happened to the base since. `fingerprint`: as the site's own check saw it last."""
    if base.name in ("", OWN):
        return ()  # nobody but its owner knows what it is now
    now = next((one for one in environments if one.name == base.name), None)
    if now is None:
        return (Doubt.GONE,)
    if now.kind is not EnvironmentKind.CONDA and now.path.rstrip("/") != base.path.rstrip("/"):
        return (Doubt.MOVED,)
    return (Doubt.CHANGED,) if fingerprint not in (None, base.fingerprint) else ()


@dataclass(frozen=True, slots=True)
class Difference:
    """From one list of packages to another, each sorted; `changed`: name, before, after."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[tuple[str, str, str], ...]


def difference(before: Iterable[str], after: Iterable[str]) -> Difference:
    """Of lists as pip freeze writes them."""
    old, new = _versions(before), _versions(after)
    both = sorted(old.keys() & new.keys(), key=str.casefold)
    return Difference(
        tuple(sorted(f"{name}=={new[name]}" for name in new.keys() - old.keys())),
        tuple(sorted(f"{name}=={old[name]}" for name in old.keys() - new.keys())),
        tuple((name, old[name], new[name]) for name in both if old[name] != new[name]),
    )


def _versions(packages: Iterable[str]) -> dict[str, str]:
    pairs = (one.partition("==") for one in packages)
    return {name: version for name, _, version in pairs}


def words(name: str, document: Document) -> str:
    """What a search looks at, in small letters."""
    parts = [name, document.note, document.base.name, document.job, *document.added]
    return "\n".join(parts).casefold()


def form_name(digest: str) -> str:
    """What the form calls it."""
    return PREFIX + digest[:SHORT]
