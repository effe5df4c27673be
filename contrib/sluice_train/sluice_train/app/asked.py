"""What the job asks of `run`: its words, and what its environment says."""

from __future__ import annotations

import argparse
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sluice_train.app.errors import Unusable
from sluice_train.files import whole

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_PLACEHOLDER = re.compile(r"\{(socket|port|base|folder)\}")
_PORTS = re.compile(r"([0-9]{4,5})-([0-9]{4,5})")
STRIPPED_WITHOUT = "{base}"


@dataclass(frozen=True)
class Asked:
    """`ports`: where the door may stand, 0 to 0 for any; seconds of idleness, 0: for ever."""

    words: tuple[str, ...]
    listen: str
    ready: str
    activity: str
    isolate: bool
    job: str
    shown: Path
    folder: Path
    idle_seconds: int
    lead_seconds: int
    ports: tuple[int, int]

    @property
    def base(self) -> str:
        """The path below which the portal shows it."""
        return f"/apps/{self.job}/"

    @property
    def strips(self) -> bool:
        """Whether the program does not know its base."""
        return not any(STRIPPED_WITHOUT in word for word in self.words)

    def filled(self, *, socket: str, port: int) -> list[str]:
        """The program's words with everything in its place."""
        known = {
            "socket": socket,
            "port": str(port),
            "base": self.base,
            "folder": str(self.shown),
        }
        return [_PLACEHOLDER.sub(lambda found: known[found[1]], word) for word in self.words]


def read(argv: Sequence[str], environment: Mapping[str, str] | None = None) -> Asked:
    """Unusable: a word or a variable makes no sense."""
    given = os.environ if environment is None else environment
    parsed = _parser().parse_args(argv)
    words = parsed.words[1:] if parsed.words[:1] == ["--"] else parsed.words
    job = given.get("SLURM_JOB_ID", "")
    if not words or not job.isdigit():
        raise Unusable("an application is started by a job, with the words of its program")
    shown = Path(parsed.folder or ".").absolute()
    if not shown.is_dir():
        raise Unusable(f"the folder to show is not there: {shown}")
    try:
        return Asked(
            words=tuple(words),
            listen=parsed.listen,
            ready=parsed.ready,
            activity=parsed.activity,
            isolate=parsed.isolate,
            job=job,
            shown=shown,
            folder=Path.cwd() / ".sluice" / "apps" / job,
            idle_seconds=max(0, whole("SLUICE_APP_IDLE_SECONDS", 0, given)),
            lead_seconds=max(0, whole("SLUICE_LEAD", 0, given)),
            ports=_ports(given.get("SLUICE_APP_PORTS", "")),
        )
    except ValueError as error:
        raise Unusable(str(error)) from error


def _ports(text: str) -> tuple[int, int]:
    if not text:
        return 0, 0
    found = _PORTS.fullmatch(text)
    if not found or not 1024 <= int(found[1]) <= int(found[2]) <= 65_535:
        raise ValueError(f"SLUICE_APP_PORTS must be LOWEST-HIGHEST, not {text!r}")
    return int(found[1]), int(found[2])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python3 -m sluice_train.app run", allow_abbrev=False)
    parser.add_argument("--listen", choices=("socket", "port"), required=True)
    parser.add_argument("--ready", default="", help="a path below the base")
    parser.add_argument("--activity", choices=("jupyter", "connections"), default="connections")
    parser.add_argument("--isolate", action="store_true", help="a network of its own")
    parser.add_argument("--folder", default="", help="the folder that the program shows")
    parser.add_argument("words", nargs=argparse.REMAINDER, help="the program")
    return parser
