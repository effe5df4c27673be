"""A recipe: a run that worked, as a document that never changes.

Its fingerprint is the SHA-256 of its text. Each class refuses what cannot be (ValueError), so that
a document from a file is held to the same as one made here (services.recipe_file).
"""

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

FORMAT = 1
LONGEST_TITLE, LONGEST_SUMMARY, LONGEST_WORD, LONGEST_VALUE = 120, 4000, 64, 2**18
MOST_TAGS, MOST_VALUES, MOST_METRICS, MOST_DATASETS = 12, 100, 40, 50
MOST_CARDS = 1_000_000
LARGEST = 2**53  # beyond it a JSON number is not exact
_TAG = re.compile(r"[^\W_][\w.+-]{0,39}")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@/-]{0,63}")
_DIGEST = re.compile(r"(?:[0-9a-f]{64})?")
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


class Visibility(StrEnum):
    """Who sees it. ME: its owner alone."""

    ME = "me"
    GROUP = "group"
    SITE = "site"


@dataclass(frozen=True, slots=True)
class TemplateUsed:
    """`fingerprint`: SHA-256 of all its files as they were at the submit; empty: not known."""

    name: str
    fingerprint: str = ""

    def __post_init__(self) -> None:
        _named(self.name)
        _digest(self.fingerprint)


@dataclass(frozen=True, slots=True)
class Shape:
    """What was asked of Slurm. `gpus` are those of one task, of `tasks`."""

    partition: str
    qos: str
    gpu_type: str
    nodes: int
    nproc_per_node: int
    gpus: int
    time_limit: str
    tasks: int = 1

    def __post_init__(self) -> None:
        for text in (self.partition, self.qos, self.gpu_type, self.time_limit):
            _line(text, LONGEST_WORD)
        for number in (self.nodes, self.nproc_per_node, self.gpus, self.tasks):
            _number(number, most=MOST_CARDS)


@dataclass(frozen=True, slots=True)
class EnvironmentUsed:
    """`definition`: SHA-256 of what the environment's name meant; `lock`: of the packages in it, as
    a check saw them; `snapshot`: the id of one; empty: not known, or none. `facts`: versions."""

    name: str
    kind: str
    definition: str = ""
    lock: str = ""
    snapshot: str = ""
    facts: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _line(self.name, 4096)
        _line(self.kind, LONGEST_WORD)
        for digest in (self.definition, self.lock, self.snapshot):
            _digest(digest)
        _texts(self.facts, most=40, longest=200)


@dataclass(frozen=True, slots=True)
class DatasetUsed:
    """A version of the catalogue; `manifest` is the SHA-256 of its list of files."""

    name: str
    version: int
    manifest: str = ""

    def __post_init__(self) -> None:
        _named(self.name)
        _number(self.version)
        _digest(self.manifest)

    @property
    def word(self) -> str:
        return f"{self.name}@{self.version}"


@dataclass(frozen=True, slots=True)
class Code:
    """The working folder's git commit as the job began, or files of it (core.recipe_code) as they
    were when it was published, or both. `clean` None: it could not be told whether files differed
    from the commit. `remote` never holds a name or password."""

    commit: str = ""
    clean: bool | None = None
    remote: str = ""
    folder: str = ""
    captured: str = ""

    def __post_init__(self) -> None:
        if self.commit and not _COMMIT.fullmatch(self.commit):
            raise ValueError("no git commit")
        if not self.commit and not self.captured:
            raise ValueError("neither a commit nor files")
        _digest(self.captured)
        _line(self.remote, 500)
        _line(self.folder, 4096)


@dataclass(frozen=True, slots=True)
class Receipt:
    """What the run measured. Times in seconds (`ran_at` since 1970, UTC), memory in bytes of the
    fullest card, money in millionths; None: not measured. `quoted`: what was held at the submit."""

    cluster: str
    ran_at: float
    gpu_type: str
    gpus: int
    run_seconds: int
    wait_seconds: int | None = None
    step_seconds: float | None = None
    tokens_per_second: float | None = None
    mfu: float | None = None
    peak_bytes: int | None = None
    cost: int | None = None
    quoted: int | None = None
    metrics: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _line(self.cluster, LONGEST_WORD)
        _line(self.gpu_type, LONGEST_WORD)
        _number(self.gpus, most=MOST_CARDS)
        wholes = (self.run_seconds, self.wait_seconds, self.peak_bytes)
        for number in (*wholes, self.cost, self.quoted, self.step_seconds):
            _number(number)
        for number in (self.ran_at, self.tokens_per_second, self.mfu):
            _number(number, most=1e18)
        if len(self.metrics) > MOST_METRICS:
            raise ValueError("too many metrics")
        for name, value in self.metrics.items():
            _named(name)
            if not math.isfinite(value):
                raise ValueError("not a finite number")

    @property
    def card_seconds(self) -> int:
        return self.gpus * self.run_seconds


@dataclass(frozen=True, slots=True)
class Recipe:
    """The whole document. `values` are the template's own fields as they were typed; `checkpoints`
    is a folder that goes with it, empty: none."""

    format: int
    title: str
    summary: str
    model: str
    tags: tuple[str, ...]
    name: str
    template: TemplateUsed
    shape: Shape
    values: dict[str, str]
    environment: EnvironmentUsed
    datasets: tuple[DatasetUsed, ...]
    code: Code | None
    seeds: dict[str, str]
    receipt: Receipt
    checkpoints: str = ""

    def __post_init__(self) -> None:
        if self.format != FORMAT:
            raise ValueError("another version of the format")
        _line(self.title, LONGEST_TITLE, required=True)
        _text(self.summary, LONGEST_SUMMARY)
        _line(self.model, LONGEST_TITLE)
        _line(self.name, 200)
        _line(self.checkpoints, 4096)
        if len(self.tags) > MOST_TAGS or len(self.datasets) > MOST_DATASETS:
            raise ValueError("too many")
        if any(not _TAG.fullmatch(tag) for tag in self.tags):
            raise ValueError("a tag that is none")
        if self.checkpoints and not self.checkpoints.startswith("/"):
            raise ValueError("not a whole path")
        _texts(self.values, most=MOST_VALUES, longest=LONGEST_VALUE)
        _texts(self.seeds, most=MOST_VALUES, longest=200)


def canonical(document: Mapping[str, Any]) -> bytes:
    """The one text of a document, whoever writes it."""
    text = json.dumps(
        document, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False
    )
    return text.encode()


def fingerprint(document: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical(document)).hexdigest()


def seeds_of(values: Mapping[str, str]) -> dict[str, str]:
    """The values that are seeds, by their names, those among a program's arguments too."""
    found = {name: value for name, value in values.items() if "seed" in name.lower() and value}
    for value in values.values():
        for name, number in re.findall(r"--([\w-]*seed)[= ]([0-9]{1,20})\b", value, re.IGNORECASE):
            found.setdefault(name[:LONGEST_WORD], number)
    return {name: value[:200] for name, value in list(found.items())[:MOST_VALUES]}


def tags_of(text: str) -> tuple[str, ...]:
    """Words of a form, commas or blanks between them, small letters, each once. ValueError."""
    words = re.split(r"[\s,，、;；]+", text.strip().casefold())
    tags = tuple(dict.fromkeys(word.lstrip("#") for word in words if word.strip("#")))
    if len(tags) > MOST_TAGS or any(not _TAG.fullmatch(tag) for tag in tags):
        raise ValueError("tags")
    return tags


def is_name(text: str) -> bool:
    """Whether a metric or the like may be called so."""
    return _NAME.fullmatch(text) is not None


def _named(text: str) -> None:
    if not is_name(text):
        raise ValueError("a name that is none")


def _digest(text: str) -> None:
    if not _DIGEST.fullmatch(text):
        raise ValueError("no SHA-256")


def _line(text: str, longest: int, *, required: bool = False) -> None:
    if len(text) > longest or not text.isprintable() or (required and not text.strip()):
        raise ValueError(f"must be one line of at most {longest} characters")


def _text(text: str, longest: int) -> None:
    plain = text.replace("\n", "").replace("\t", "")
    if len(text) > longest or not plain.isprintable():
        raise ValueError(f"must be text of at most {longest} characters")


def _texts(found: Mapping[str, str], *, most: int, longest: int) -> None:
    if len(found) > most:
        raise ValueError("too many")
    for name, value in found.items():
        _line(name, LONGEST_WORD, required=True)
        _text(value, longest)


def _number(value: float | None, *, most: float = LARGEST) -> None:
    if value is not None and not 0 <= value <= most:
        raise ValueError("a number beyond belief")
