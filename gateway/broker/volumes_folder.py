"""A plain folder: it is measured, and nothing can limit it."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gateway.broker.volumes_areas import AreaSettings, Figures, Tools, Trouble


@dataclass(frozen=True, slots=True)
class Folder:
    """`du` reads the whole tree, so what does not end in time is not known."""

    tools: Tools
    limits: bool = False

    def read(self, area: AreaSettings, names: Sequence[str]) -> Mapping[str, Figures]:
        end = time.monotonic() + self.tools.commands.timeout_seconds
        return {name: self._figures(area.path / name, end - time.monotonic()) for name in names}

    def make(self, _area: AreaSettings, folder: Path) -> None:
        folder.mkdir(mode=0o700)

    def limit(self, area: AreaSettings, _folder: Path, limit_bytes: int | None) -> None:
        if limit_bytes is not None:
            raise Trouble(f"{area.name} only measures", code="volume_no_limits")

    def _figures(self, folder: Path, seconds: float) -> Figures:
        argv = ["timeout", "--signal=KILL", f"{max(0.1, seconds):.1f}"]
        argv += ["du", "--summarize", "--block-size=1", "--", str(folder)]
        try:
            done = self.tools.run(argv)
            return Figures(int(done.stdout.split()[0]), None)
        except (Trouble, ValueError, IndexError) as error:
            slow = seconds <= 0.1 or getattr(error, "code", "") == "volume_timeout"
            return Figures(None, None, "volume_timeout" if slow else "volume_unreadable")
