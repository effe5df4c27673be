"""Datasets: names, what a person may choose from, manifests, and reports of verifications.

A manifest is a text of lines `<sha256> <bytes> <relative path>`, sorted by path; the SHA-256 of
the text names the content.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.core.answers import BadValue
from gateway.errors import Refused

FIELD = "datasets"
LONGEST_NAME = 64
LONGEST_TEXT = 4000
MOST_MANIFEST_BYTES = 256 * 2**20
MOST_TOLD = 200  # files of each kind in a report
HEALTH = ("unknown", "good", "damaged", "failed")
VISIBILITY = ("everyone", "listed", "groups")

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}", re.ASCII)
_WORD = re.compile(r"([a-z0-9][a-z0-9._-]{0,63})(?:@([1-9][0-9]{0,8}))?", re.ASCII)
_FOLDER = re.compile(r"/[\w./+=@%-]+")  # as in the form: no colon, no comma
_LINE = re.compile(r"([0-9a-f]{64}) (0|[1-9][0-9]{0,17}) ([^\n\0]{1,4096})")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Offered:
    """A published version that a person may use. `bytes` and `files` are those of the manifest,
    `read_mbps` is measured, in MB (10^6 bytes) a second; None: nobody has."""

    version_id: int
    name: str
    version: int
    title: str
    licence: str
    path: str
    bytes: int | None
    files: int | None
    manifest: str | None
    manifest_path: str
    read_mbps: float | None
    health: str

    @property
    def word(self) -> str:
        return f"{self.name}@{self.version}"


@dataclass(frozen=True, slots=True)
class Chosen:
    """What the words of a form mean: folders, and for each its manifest as `<sha256>:<path>`, ""
    where there is none. `versions` are those of the catalogue among them, each once."""

    folders: tuple[str, ...] = ()
    manifests: tuple[str, ...] = ()
    versions: tuple[Offered, ...] = ()


NOTHING_CHOSEN = Chosen()


@dataclass(frozen=True, slots=True)
class Totals:
    """Of a manifest: its SHA-256, and what it lists."""

    sha256: str
    bytes: int
    files: int


class BadManifest(Refused):
    """The text is no manifest: dataset_manifest_line (`line`) or dataset_manifest_empty."""


def is_word(word: str) -> bool:
    """Whether it is a catalogue's name, with a version or without, and no folder."""
    return _WORD.fullmatch(word) is not None


def resolve(words: Sequence[str], offered: Sequence[Offered]) -> Chosen:
    """A name is its newest published version; a folder is itself. BadValue unknown_dataset: also
    for what is there and not for this person."""
    folders, manifests, versions = [], [], []
    for word in words:
        if word.startswith("/"):
            folders.append(word)
            manifests.append("")
            continue
        found = find(word, offered)
        if found is None:
            raise BadValue("unknown_dataset", FIELD, name=word[:LONGEST_NAME])
        if found in versions:
            continue
        folders.append(found.path)
        manifests.append(f"{found.manifest}:{found.manifest_path}" if found.manifest else "")
        versions.append(found)
    return Chosen(tuple(folders), tuple(manifests), tuple(versions))


def find(word: str, offered: Sequence[Offered]) -> Offered | None:
    """The version that a word means, of those offered."""
    parts = _WORD.fullmatch(word)
    if parts is None:
        return None
    name, version = parts.groups()
    mine = [one for one in offered if one.name == name]
    if version is not None:
        mine = [one for one in mine if one.version == int(version)]
    return max(mine, key=lambda one: one.version, default=None)


def check_name(name: str) -> str:
    """Refused dataset_name: small letters, digits and . _ -, at most 64."""
    if not _NAME.fullmatch(name):
        raise Refused("dataset_name", field="name")
    return name


def check_folder(path: str, *, field: str = "path") -> str:
    """An absolute folder or file that a form may hold; Refused dataset_path."""
    cleaned = path.strip().rstrip("/")
    if not _FOLDER.fullmatch(cleaned) or ".." in cleaned.split("/"):
        raise Refused("dataset_path", field=field)
    return cleaned


def check_text(text: str, *, field: str, required: bool = False, longest: int = 200) -> str:
    """A text for people: Refused dataset_text_missing or dataset_text_long."""
    cleaned = "".join(c for c in text if c.isprintable() or c in "\n\t").strip()
    if required and not cleaned:
        raise Refused("dataset_text_missing", field=field)
    if len(cleaned) > longest:
        raise Refused("dataset_text_long", field=field, max=longest)
    return cleaned


def check_visibility(word: str) -> str:
    if word not in VISIBILITY:
        raise Refused("dataset_visibility", field="visibility")
    return word


def totals(text: str) -> Totals:
    """What a manifest's text sums up to; BadManifest where it is none. Paths are relative, without
    `..`, in the order of their bytes, each once."""
    last, size, files = b"", 0, 0
    for number, line in enumerate(text.splitlines() if "\r" not in text else [""], start=1):
        found = _LINE.fullmatch(line)
        path = found.group(3) if found else ""
        parts = path.split("/")
        if found is None or path.startswith("/") or not {"", ".", ".."}.isdisjoint(parts):
            raise BadManifest("dataset_manifest_line", line=number)
        if path.encode() <= last:
            raise BadManifest("dataset_manifest_line", line=number)
        last, size, files = path.encode(), size + int(found.group(2)), files + 1
    if not files:
        raise BadManifest("dataset_manifest_empty")
    return Totals(hashlib.sha256(text.encode()).hexdigest(), size, files)


@dataclass(frozen=True, slots=True)
class Report:
    """A verification as its job wrote it. Lists hold at most MOST_TOLD paths, counts are whole.
    `seconds` and `bytes_read` are of reading alone. `error`: it could not be carried out."""

    manifest: str
    changed: tuple[str, ...]
    missing: tuple[str, ...]
    extra: tuple[str, ...]
    counts: dict[str, int]
    files: int
    bytes_read: int
    seconds: float
    writable: bool
    error: str = ""

    @property
    def health(self) -> str:
        if self.error:
            return "failed"
        return "damaged" if any(self.counts.values()) else "good"

    @property
    def mbps(self) -> float | None:
        """MB (10^6 bytes) a second."""
        if self.seconds <= 0 or self.bytes_read <= 0:
            return None
        return self.bytes_read / self.seconds / 1e6


def read_report(raw: Mapping[str, Any]) -> Report:
    """From what a job wrote, who may have written anything; ValueError."""
    try:
        counts = {kind: _count(raw["counts"][kind]) for kind in ("changed", "missing", "extra")}
        seconds = float(raw["seconds"])
        manifest = str(raw["manifest"])
        report = Report(
            manifest=manifest,
            changed=_paths(raw["changed"]),
            missing=_paths(raw["missing"]),
            extra=_paths(raw["extra"]),
            counts=counts,
            files=_count(raw["files"]),
            bytes_read=_count(raw["bytes_read"]),
            seconds=seconds,
            writable=raw["writable"] is True,
            error=str(raw.get("error") or "")[:500],
        )
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError("no report of a verification") from error
    if not 0 <= seconds < 10**9 or not _SHA256.fullmatch(manifest):
        raise ValueError("no report of a verification")
    return report


def _count(raw: object) -> int:
    if not isinstance(raw, int) or isinstance(raw, bool) or not 0 <= raw < 2**62:
        raise ValueError("no count")
    return raw


def _paths(raw: object) -> tuple[str, ...]:
    if not isinstance(raw, list):
        raise ValueError("no list of paths")
    return tuple(str(one)[:500] for one in raw[:MOST_TOLD])
