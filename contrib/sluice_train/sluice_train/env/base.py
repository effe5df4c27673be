"""The read-only base below an overlay: its Python, its packages, and a fingerprint of them."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sluice_train.env.errors import Unusable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_ASK = (
    "import json,site,sys;"
    "print(json.dumps([sys.prefix, '%d.%d' % sys.version_info[:2], site.getsitepackages()]))"
)
_SECONDS = 60


@dataclass(frozen=True)
class Base:
    """`sites` are its folders of packages, `version` that of its Python, as in 3.11."""

    name: str
    kind: str  # venv, conda
    path: Path
    python: Path
    version: str
    sites: tuple[Path, ...]

    def fields(self) -> dict[str, str]:
        """As they stand in a document."""
        return {
            "name": self.name,
            "kind": self.kind,
            "path": str(self.path),
            "python": self.version,
            "fingerprint": self.fingerprint(),
        }

    def fingerprint(self) -> str:
        """Of its Python and of what each package says that it installed."""
        found = hashlib.sha256(f"python {self.version}\n".encode())
        for name in sorted(record_hashes(self.sites)):
            found.update(f"{name}\n".encode())
        for meta in sorted(self.path.glob("conda-meta/*.json")):
            found.update(f"{meta.name}\n".encode())
        return found.hexdigest()


def of_environment(name: str, environment: Mapping[str, str]) -> Base:
    """The environment that is active. Unusable: none is."""
    for variable, kind in (("VIRTUAL_ENV", "venv"), ("CONDA_PREFIX", "conda")):
        if environment.get(variable):
            return look(Path(environment[variable]), name=name, kind=kind)
    raise Unusable(
        "what is installed can be kept above a venv or a conda environment: choose one in the form"
    )


def look(path: Path, *, name: str = "", kind: str = "venv") -> Base:
    """Ask the Python at `path`. Unusable: there is none, or it does not answer."""
    python = path / "bin" / "python"
    environment = {key: os.environ[key] for key in ("PATH", "LD_LIBRARY_PATH") if key in os.environ}
    try:
        answer = subprocess.run(  # noqa: S603
            [str(python), "-I", "-c", _ASK],
            capture_output=True,
            check=True,
            timeout=_SECONDS,
            stdin=subprocess.DEVNULL,
            env=environment,
        )
        prefix, version, sites = json.loads(answer.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise Unusable(f"the base {path} has no Python that runs: {error}") from error
    if Path(prefix).resolve() != path.resolve():
        raise Unusable(f"{path} is no virtual environment and no conda environment")
    folders = tuple(Path(site) for site in sites if Path(site).is_dir())
    return Base(name, kind, path, python, version, folders)


def record_hashes(sites: Sequence[Path]) -> dict[str, str]:
    """`name==version SHA-256 of its RECORD` → `name==version`, of the first folder that has it."""
    found: dict[str, str] = {}
    seen: set[str] = set()
    for site in sites:
        for info in sorted(site.glob("*.dist-info")):
            title, key = _title(info)
            if key in seen:
                continue
            seen.add(key)
            found[f"{title} {_hash(info / 'RECORD')}"] = title
    return found


def packages(sites: Sequence[Path]) -> list[str]:
    """`name==version`, as pip freeze would, sorted."""
    return sorted(record_hashes(sites).values(), key=str.casefold)


def _title(info: Path) -> tuple[str, str]:
    """The name as its author writes it, and as it is compared."""
    stem = info.name[: -len(".dist-info")]
    name, _, version = stem.partition("-")
    try:
        with (info / "METADATA").open(encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("Name:"):
                    name = line[5:].strip() or name
                    break
                if not line.strip():
                    break
    except OSError:
        pass
    return f"{name}=={version}", re.sub(r"[-_.]+", "-", name).lower()


def _hash(record: Path) -> str:
    """Of what was installed: scripts are passed over, whose first line names a folder."""
    found = hashlib.sha256()
    try:
        with record.open("rb") as file:
            for line in file:
                if not line.startswith(b"../"):
                    found.update(line)
    except OSError:
        return "-"
    return found.hexdigest()


def main(argv: list[str]) -> int:
    """Print the fingerprint of a base."""
    parser = argparse.ArgumentParser(prog="sluice_train.env fingerprint")
    parser.add_argument("--base", type=Path, required=True)
    print(look(parser.parse_args(argv[1:]).base).fingerprint())
    return 0
