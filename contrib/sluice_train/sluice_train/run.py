"""A training run as its script sees it."""

from __future__ import annotations

import math
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sluice_train.checkpoint import Checkpoint, move_incomplete
from sluice_train.errors import NoCheckpoint, WrongWorld
from sluice_train.progress import Progress
from sluice_train.questions import Questions
from sluice_train.ranks import Ranks
from sluice_train.report import Report
from sluice_train.saves import Saves
from sluice_train.settings import KEEP, SAVE_SECONDS, Settings
from sluice_train.stop import StopRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SOON = 0.1  # of the time between saves


def start(
    *,
    model_params: int | None = None,
    flops_per_token: float | None = None,
    save_seconds: int = SAVE_SECONDS,
    keep: int = KEEP,
) -> Run:
    """The run of this process, in all ranks after `init_process_group`.

    `model_params` and `flops_per_token` (forward and backward) let the job's page show MFU.
    `save_seconds` (0: only on a stop) and `keep` are for a run without Sluice: a job brings its
    own. WrongWorld: not all ranks are here. NoCheckpoint: the one to begin with is not whole.
    OSError: the run folder cannot be written.
    """
    settings = Settings.of_environment(save_seconds=save_seconds, keep=keep)
    run = Run(settings, Ranks.met())
    facts = {"params": model_params, "flops_per_token": flops_per_token}
    known = {name: value for name, value in facts.items() if value is not None}
    if known:
        run.tell("model", **known)
    return run


def resume_path() -> str | None:
    """Where to begin, for a framework that wants it before the run; None: from the start.

    NoCheckpoint: the one chosen is not whole.
    """
    found = Settings.of_environment().resumed()
    return str(found.path) if found else None


class Run:
    """Saves, stops and reports. Steps count from 1: checkpoint `n` is of `n` steps done.

    `step`, `steps`, `saving` and `finish` are called by all ranks alike: what they answer is the
    same on each.
    """

    def __init__(
        self, settings: Settings, ranks: Ranks, *, now: Callable[[], float] = time.time
    ) -> None:
        self._settings = settings
        self._folder = settings.folder
        self._ranks = ranks
        self._now = now
        self._report = Report(self._folder, speaks=ranks.first)
        self._progress = Progress(self._report.progress, now)
        self.resume = self._chosen()
        self._take_folder()
        self._saves = Saves(
            self._folder.checkpoints, settings.keep, ranks=ranks, report=self._report
        )
        self._questions = Questions(now)
        self._request = StopRequest(self._folder.stop)
        self._request.listen()
        self._save_at = self._first_save()
        self._stop_step: int | None = None
        self._done = self.resume_step
        self._ready = self._all_done = False

    @property
    def rank(self) -> int:
        """Of this process, from 0."""
        return self._ranks.rank

    @property
    def world(self) -> int:
        """How many ranks there are."""
        return self._ranks.world

    @property
    def resume_path(self) -> str | None:
        """The folder of the checkpoint to load; None: from the start."""
        return str(self.resume.path) if self.resume else None

    @property
    def resume_step(self) -> int:
        """How many steps are done in it; 0 from the start."""
        return self.resume.step if self.resume else 0

    @property
    def stopping(self) -> bool:
        """Whether all ranks have agreed to end before the end. Leave the loop, then `finish`."""
        return self._stop_step is not None and not self._all_done

    def require_same_world(self) -> None:
        """WrongWorld where another number of ranks wrote the checkpoint: for plain ZeRO."""
        if self.resume and self.resume.world not in (None, self.world):
            raise WrongWorld(
                f"The checkpoint of step {self.resume_step} was written by {self.resume.world} "
                f"ranks, and these are {self.world}. This framework cannot share it out anew: ask "
                f"for {self.resume.world} ranks, or convert it (ds_to_universal of DeepSpeed)."
            )

    def ready(self) -> None:
        """The checkpoint is loaded and the first step begins. `steps` says so by itself."""
        if not self._ready:
            self._ready = self._ranks.all(True)
            self._progress.begin()
            self._questions.begin()
            self.tell("ready", world=self.world, step=self.resume_step)

    def steps(self, total: int) -> Iterator[int]:
        """The steps from the one after `resume_step` to `total`, until a stop."""
        self.ready()
        for step in range(self.resume_step + 1, total + 1):
            yield step
            if self.stopping and step < total:
                return
        self._all_done = True

    def report(self, **numbers: Any) -> None:
        """Give numbers for the job's page with the next step; those of rank 0 count."""
        if self._ranks.first:
            self._progress.report(numbers)

    def step(self, step: int, **numbers: Any) -> bool:
        """Step `step` is done: report it, and say whether to save now.

        `tokens` and `samples` are those of this step over all ranks; `loss` and any other number
        may be a tensor, which is read once a second.
        """
        self.ready()
        self._done = step
        if self._ranks.first:
            self._progress.report(numbers)
            self._progress.step(step)
        due = self._ask(step) if self._questions.due() else False
        return due or (self.stopping and self._saves.last_step != step and not self._smoked)

    @contextmanager
    def saving(self, step: int) -> Iterator[Path]:
        """`with run.saving(step) as folder:` every rank writes its part into the folder.

        What the disk or the framework refuses is reported and the training goes on, with the
        earlier checkpoints. ValueError: a step below 0.
        """
        started = self._now()
        with self._saves.saving(step) as folder:
            yield folder
        self._plan_save()
        self._progress.skip(self._now() - started)

    def seal_after(self, future: Any) -> None:
        """Inside `saving`, after `async_save`: it is a checkpoint only when `future` is done."""
        self._saves.seal_after(future)

    def adopt(self, step: int, path: Path, *, seconds: float = 0.0) -> None:
        """A framework wrote checkpoint `step` into `path` by itself: sync it and name its files.

        `seconds` is how long that took.
        """
        self._saves.adopt(step, path, seconds)
        self._plan_save()

    def finish(self, *, complete: bool = False) -> None:
        """Every rank is through: DONE, or STOPPED where it was stopped and is saved. OSError.

        `complete`: the last step is done, although a stop was asked for. `steps` knows by itself.
        """
        self._saves.conclude()
        if self._ranks.first:
            self._progress.flush()
        self._ranks.all(True)
        if complete or not self.stopping or self._smoked:
            self._report.mark(self._folder.done, step=self._done)
            self.tell("done", step=self._done)
        elif self._saved_since_stop():
            self._report.mark(self._folder.stopped, step=self._saves.last_step)
            self.tell("stopped", step=self._saves.last_step)
        else:
            self._report.say("asked to stop, and nothing was saved since")
        self._request.leave()

    def tell(self, kind: str, **facts: Any) -> None:
        """Put an event into the run's list, by rank 0."""
        self._report.event(kind, **facts)

    @property
    def _smoked(self) -> bool:
        """Whether this is the second pass of a smoke job: what the first saved is loaded."""
        return self._settings.smoke and self.resume is not None

    def _chosen(self) -> Checkpoint | None:
        chosen = self._settings.resumed()
        step = chosen.step if chosen else -1
        highest, lowest = self._ranks.maximum([step, -step])
        if highest != -lowest:
            raise NoCheckpoint(
                f"The ranks do not see the same checkpoints in {self._folder.checkpoints}: it "
                "must be on a disk that all nodes share."
            )
        return chosen

    def _take_folder(self) -> None:
        if self._ranks.first:
            self._folder.checkpoints.mkdir(parents=True, exist_ok=True)
            if not self._settings.prepared:
                for left in (self._folder.stop, self._folder.stopped, self._folder.done):
                    left.unlink(missing_ok=True)
                move_incomplete(self._folder.checkpoints)
            self._report.mark(self._folder.managed)
        self._ranks.all(True)

    def _first_save(self) -> float:
        """Counted from the last save, so that restarts do not put it off for ever.

        Nor at once, where the job waited long for its restart: it must get on before it saves.
        """
        seconds = self._settings.save_seconds or math.inf
        soon = self._now() + SOON * seconds
        if self.resume is None:
            return soon if self._folder.restart else self._now() + seconds
        return max(self.resume.at + seconds, soon)

    def _ask(self, step: int) -> bool:
        """Ask all ranks at once what each may know: stop, save, still writing, how long a step."""
        due = self._ranks.first and self._now() >= self._save_at
        stop = self._request.asked(look=self._ranks.leads_node) or self._settings.smoke
        mine = [float(stop), float(due), float(not self._saves.written), self._questions.seconds()]
        told = self._ranks.maximum(mine)
        if told[0] and self._stop_step is None:
            self._stop_step = step
        self._questions.answered(told[3])
        if self._saves.pending and not told[2]:
            self._saves.conclude()
            if self._saves.failed:
                self._plan_save()
        return bool(told[1]) and not self._saves.pending

    def _plan_save(self) -> None:
        """The next save by the clock: sooner after one that failed, but not at once."""
        seconds = self._settings.save_seconds or math.inf
        self._save_at = self._now() + seconds * (SOON if self._saves.failed else 1)

    def _saved_since_stop(self) -> bool:
        last, stop = self._saves.last_step, self._stop_step
        return last is not None and stop is not None and last >= stop
