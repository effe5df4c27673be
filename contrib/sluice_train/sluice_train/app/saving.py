"""A snapshot of what was installed in the application, made beside it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sluice_train.app.state import State

KIT = Path(__file__).resolve().parents[2]
WORDS = ("-m", "sluice_train.env", "save", "--json")
BEGUN, NOTHING_TO_SAVE = 202, 409


class Saving:
    """One save at a time; its result stands in the state."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> int:
        """Start a save, unless one is at work: the status of the answer."""
        if not os.environ.get("SLUICE_OVERLAY"):
            self._state.save_error = "this environment has no overlay: nothing is kept in it"
            return NOTHING_TO_SAVE
        if not self._state.saving:
            self._state.saving, self._state.save_error = True, ""
            self._task = asyncio.ensure_future(self._save())
        return BEGUN

    async def _save(self) -> None:
        state = self._state
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *WORDS,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": str(KIT)},
            )
            out, errors = await process.communicate()
            if process.returncode:
                lines = errors.decode(errors="replace").strip().splitlines()
                state.save_error = lines[-1] if lines else f"exit code {process.returncode}"
            else:
                state.saved = str(json.loads(out)["id"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            state.save_error = str(error)
        finally:
            state.saving = False
