"""A checkpoint that all ranks write together: whole for all of them, or not there for any."""

from __future__ import annotations

import shutil
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sluice_train.checkpoint import (
    Checkpoint,
    abandon,
    begin,
    complete,
    prune,
    seal,
    sync,
    unfinished,
    write_manifest,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from sluice_train.ranks import Ranks
    from sluice_train.report import Report

_THEIR_ERRORS = (
    ("torch.distributed.checkpoint", "CheckpointException"),
    ("safetensors", "SafetensorError"),
)


@dataclass(frozen=True)
class Save:
    """One that is under way. `seconds` are those that the training stood still for it."""

    step: int
    aside: Path
    seconds: float = 0.0
    future: Any = None


class Saves:
    """The saves of this launch. What fails is reported, and the training goes on."""

    def __init__(self, folder: Path, keep: int, *, ranks: Ranks, report: Report) -> None:
        self._folder = folder
        self._keep = keep
        self._ranks = ranks
        self._report = report
        self._error: BaseException | None = None
        self._future: Any = None
        self._pending: Save | None = None
        self.last_step: int | None = None  # of the last complete one, the same for all ranks
        self.failed = False  # the last one

    @property
    def pending(self) -> bool:
        """Whether one is still being written beside the training."""
        return self._pending is not None

    @property
    def written(self) -> bool:
        """Whether this rank has nothing more to write of the pending one."""
        return self._pending is None or self._pending.future is None or self._pending.future.done()

    @contextmanager
    def saving(self, step: int) -> Iterator[Path]:
        """The folder into which every rank writes its part of checkpoint `step`."""
        self.conclude()
        self._future = None  # of one that a mistake of the script broke off
        started = time.monotonic()
        self._report.event("save_begin", step=step)
        save = Save(step, unfinished(self._folder, step))
        begun = self._all((lambda: begin(self._folder, step)) if self._ranks.first else None)
        try:
            # Where the folder could not be made, writing into it fails too, and ends below.
            yield save.aside
        except BaseException as error:
            if not _is_of_the_save(error):
                raise
            self._error = self._error or error
        save = replace(save, future=self._future)
        self._future = None
        written = self._all() and begun
        later = self._ranks.maximum([float(save.future is not None)]) == [1.0]
        save = replace(save, seconds=time.monotonic() - started)
        if written and later:
            self._pending = save
        else:
            self._end(save, self._named(save), written=written)

    def adopt(self, step: int, path: Path, seconds: float) -> None:
        """Name the files of a checkpoint that a framework wrote by itself. All ranks."""
        save = Save(step, path, seconds)

        def name() -> Checkpoint | None:
            write_manifest(path, step, self._ranks.world)
            return complete(path)

        self._end(save, name, written=self._all())

    def seal_after(self, future: Any) -> None:
        """What is being written is complete when `future` is: of `async_save`, or one like it."""
        # torch has answers that hold two: the one of the copy to memory, and the one of the disk.
        self._future = getattr(future, "upload_completion", future)

    def conclude(self) -> None:
        """Wait for the pending save, and make it a checkpoint. All ranks."""
        if self._pending is not None:
            save, self._pending = self._pending, None
            self._end(save, self._named(save), written=True)

    def _named(self, save: Save) -> Callable[[], Checkpoint | None]:
        return lambda: seal(save.aside, save.step, self._ranks.world)

    def _end(self, save: Save, name: Callable[[], Checkpoint | None], *, written: bool) -> None:
        started = time.monotonic()
        named: list[Checkpoint | None] = []
        future = save.future
        # Even where another rank failed: nobody may write into a folder that is being deleted.
        done = self._all(future.result if future is not None else None) and written
        done = done and self._all((lambda: sync(save.aside)) if self._ranks.leads_node else None)
        done = done and self._all((lambda: named.append(name())) if self._ranks.first else None)
        if not done:
            self._fail(save)
            return
        self.last_step, self.failed = save.step, False
        for checkpoint in filter(None, named):
            self._report.event(
                "saved",
                step=save.step,
                seconds=round(save.seconds + time.monotonic() - started, 3),
                bytes=checkpoint.bytes,
                path=str(checkpoint.path),
            )
            self._prune()

    def _fail(self, save: Save) -> None:
        text = f"{type(self._error).__name__}: {self._error}" if self._error else ""
        self._error, self.failed = None, True
        text = self._ranks.first_text(text) + self._free()
        if self._ranks.first and save.aside.suffix == ".tmp":  # else it is the framework's own
            abandon(save.aside)
        self._report.event("save_failed", step=save.step, error=text)
        self._report.say(f"step {save.step} was not saved, the training goes on: {text}")

    def _free(self) -> str:
        """What frameworks do not say when the disk is full."""
        with suppress(OSError):
            return f" ({shutil.disk_usage(self._folder).free / 1e9:.1f} GB were free)"
        return ""

    def _prune(self) -> None:
        try:
            for checkpoint in prune(self._folder, self._keep):
                self._report.event("pruned", step=checkpoint.step)
        except OSError as error:
            self._report.say(f"an old checkpoint could not be deleted: {error}")

    def _all(self, act: Callable[[], Any] | None = None) -> bool:
        """Do `act` here, and tell whether nothing has failed on any rank."""
        try:
            if act is not None:
                act()
        except BaseException as error:
            if not _is_of_the_save(error):
                raise
            self._error = self._error or error
        return self._ranks.all(self._error is None)


def _is_of_the_save(error: BaseException) -> bool:
    """Whether the disk or the framework failed, and not the script: its mistakes must be seen."""
    if isinstance(error, (NotImplementedError, RecursionError)):
        return False
    # torch's own is no Exception, and tells of any rank's failure on all of them.
    of_frameworks = tuple(
        getattr(sys.modules[module], name)
        for module, name in _THEIR_ERRORS
        if hasattr(sys.modules.get(module), name)
    )
    return isinstance(error, (OSError, RuntimeError, *of_frameworks))
