"""What pip would download, said before it does."""

import json
import urllib.parse
import urllib.request
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TIMEOUT_SECONDS = 20
CUDA_PACKAGES = ("nvidia-", "cuda-", "triton")


@dataclass(frozen=True, slots=True)
class Package:
    name: str
    version: str
    size: int | None  # bytes; None where the index does not tell


@dataclass(frozen=True, slots=True)
class Download:
    packages: tuple[Package, ...]

    @property
    def size(self) -> int:
        """Bytes, as far as they are known."""
        return sum(package.size or 0 for package in self.packages)

    @property
    def for_cuda(self) -> bool:
        return any(package.name.startswith(CUDA_PACKAGES) for package in self.packages)

    def version(self, name: str) -> str:
        return next(package.version for package in self.packages if package.name == name)

    def described(self) -> str:
        unknown = sum(package.size is None for package in self.packages)
        more = f" and {unknown} of unknown size" if unknown else ""
        largest = sorted(self.packages, key=lambda package: -(package.size or 0))[:5]
        names = ", ".join(f"{p.name} {p.version} ({_mb(p.size)})" for p in largest)
        return f"{len(self.packages)} packages, {_mb(self.size)}{more}; the largest: {names}"


def planned(report: str) -> Download:
    """From the text of pip's --report."""
    read: dict[str, Any] = json.loads(report)
    return Download(tuple(_packages(read["install"])))


def _packages(entries: Iterable[dict[str, Any]]) -> Iterable[Package]:
    for entry in entries:
        about = entry["metadata"]
        name = str(about["name"]).lower().replace("_", "-")
        yield Package(name, str(about["version"]), _size(str(entry["download_info"]["url"])))


def _size(url: str) -> int | None:
    parts = urllib.parse.urlsplit(url)
    if parts.scheme == "file":
        return Path(urllib.parse.unquote(parts.path)).stat().st_size
    if parts.scheme not in ("http", "https"):
        return None
    request = urllib.request.Request(url, method="HEAD")  # noqa: S310 - the scheme is checked
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:  # noqa: S310
            length = answer.headers.get("Content-Length")
    except OSError:
        return None  # a size is a kindness, not worth failing for
    return int(length) if length else None


def _mb(size: int | None) -> str:
    if size is None:
        return "size unknown"
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.1f} MB"
