"""Code that goes with a recipe: a few files of text, by their paths below a folder.

Its name is the SHA-256 of its one text, so the same code is kept once, whoever captured it.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping

from gateway.core.recipes import canonical

MOST_FILES, LARGEST_FILE, LARGEST = 100, 2**17, 2**19  # bytes
LONGEST_PATH, DEEPEST = 400, 8
# What others need to run it again. Data, models and results have places of their own.
_ENDS = re.compile(
    r"\.(?:py|pyi|pyx|ipynb|sh|bash|sbatch|slurm|r|jl|lua|c|h|cc|cpp|cxx|hpp|cu|cuh|rs|go|js|ts|java"
    r"|toml|yaml|yml|json|jsonc|jsonl|ini|cfg|conf|txt|md|rst|csv|tsv|j2|jinja|cmake|mk|def)",
    re.IGNORECASE,
)
_NAMES = frozenset({"Makefile", "Dockerfile", "Containerfile", "Snakefile", "LICENSE", "README"})
_SECRET = re.compile(
    r"(?:^|[._-])(?:secrets?|tokens?|passwords?|passwd|credentials?|netrc|apikeys?)(?:[._-]|$)",
    re.IGNORECASE,
)
_PRIVATE_KEY = "PRIVATE KEY-----"


def is_code(name: str) -> bool:
    """Whether a file called so is taken: by its ending, nothing hidden, nothing that sounds like a
    secret."""
    if name.startswith(".") or _SECRET.search(name):
        return False
    return name in _NAMES or _ENDS.fullmatch(name, max(0, name.rfind("."))) is not None


def is_private(text: str) -> bool:
    """Whether a file's text must not go to others, whatever it is called."""
    return _PRIVATE_KEY in text


def require(files: Mapping[str, str]) -> None:
    """ValueError for what could not be laid into a folder as it is, or is too large."""
    if not 0 < len(files) <= MOST_FILES:
        raise ValueError("no files, or too many")
    for path, text in files.items():
        _require_path(path)
        if "\0" in text or len(text.encode()) > LARGEST_FILE:
            raise ValueError("a file that is no text, or too large")
    if size(files) > LARGEST:
        raise ValueError("too large")
    if folders(files) & files.keys():
        raise ValueError("a file and a folder of one name")


def folders(paths: Iterable[str]) -> set[str]:
    """All folders that these files lie in."""
    found: set[str] = set()
    for path in paths:
        parts = path.split("/")[:-1]
        found |= {"/".join(parts[: count + 1]) for count in range(len(parts))}
    return found


def size(files: Mapping[str, str]) -> int:
    """In bytes."""
    return sum(len(text.encode()) for text in files.values())


def digest(files: Mapping[str, str]) -> str:
    return hashlib.sha256(canonical(files)).hexdigest()


def _require_path(path: str) -> None:
    parts = path.split("/")
    plain = path.isprintable() and len(path.encode()) <= LONGEST_PATH and len(parts) <= DEEPEST
    if not plain or any(part in {"", ".", ".."} or len(part.encode()) > 255 for part in parts):
        raise ValueError("a path that is none")
