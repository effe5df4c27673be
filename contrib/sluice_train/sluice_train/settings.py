"""What the job's environment says, and what the script says where there is no job."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sluice_train.checkpoint import Checkpoint, complete, newest
from sluice_train.errors import NoCheckpoint
from sluice_train.files import RunFolder, whole

if TYPE_CHECKING:
    from collections.abc import Mapping

SAVE_SECONDS = 7200  # two hours, as published; the planner works out a better one for each job
KEEP = 2


@dataclass(frozen=True)
class Settings:
    """`save_seconds` 0: only when asked to stop. `prepared`: the job's own tools chose `resume`."""

    folder: RunFolder
    save_seconds: int
    keep: int
    smoke: bool
    prepared: bool
    resume: str

    @classmethod
    def of_environment(
        cls,
        *,
        save_seconds: int = SAVE_SECONDS,
        keep: int = KEEP,
        environment: Mapping[str, str] | None = None,
    ) -> Settings:
        """What SLUICE_* say; the arguments are for where they do not. ValueError: no number."""
        given = os.environ if environment is None else environment
        return cls(
            folder=RunFolder.of_environment(given),
            save_seconds=whole("SLUICE_CHECKPOINT_SECONDS", save_seconds, given),
            keep=max(1, whole("SLUICE_CHECKPOINT_KEEP", keep, given)),
            smoke=given.get("SLUICE_SMOKE") == "1",
            prepared=bool(given.get("SLUICE_KIT")),
            resume=given.get("SLUICE_RESUME", ""),
        )

    def resumed(self) -> Checkpoint | None:
        """The checkpoint to begin with, or None; NoCheckpoint where the one chosen is not whole."""
        if self.resume:
            chosen = complete(Path(self.resume))
            if chosen is None:
                raise NoCheckpoint(f"{self.resume} is not a complete checkpoint.")
            return chosen
        return None if self.prepared else newest(self.folder.checkpoints)
