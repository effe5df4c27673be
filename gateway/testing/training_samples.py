"""A training run over two jobs and four stretches on nodes: for pages and for a look by hand.

The first job was preempted, went on, stalled for a while, and ended at its time limit; the second
goes on from there and runs now.
"""

import math
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from gateway.store import models as t
from gateway.store import training
from gateway.store.uow import Begin
from gateway.testing import builders as b
from gateway.testing.fakefiles import FakeFiles
from gateway.testing.training import RunFolder, add_portal_job, run_folder

RUN = "gpt-small"
STEP_SECONDS = 1.0
TOKENS = 349_525  # of a step
PARAMS = 1.3e9
SAVE_EVERY = timedelta(hours=2)
CHECKPOINT_BYTES = 15_600_000_000
PLACE = "rclone:archive:runs/gpt-small"
_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class TrainingSample:
    """The two jobs, the folder of the second, and the step it has come to."""

    first: int
    second: int
    folder: RunFolder
    step: int


@dataclass(slots=True)
class Trainer:
    """Writes what a run of `cards` GPUs on `nodes` tells, as time passes."""

    folder: RunFolder
    nodes: tuple[str, ...]
    cards: int = 8
    saved: int = 0
    step: int = 0

    def begin(self, at: datetime) -> datetime:
        """The script begins, the ranks meet; answers when the first step is made."""
        self.step = self.saved
        resume: dict[str, Any] = {"resume_step": self.saved or None, "resume_path": None}
        if self.saved:
            resume["resume_path"] = self._path()
        self.folder.event(at + timedelta(seconds=4), "start", nodes=len(self.nodes), **resume)
        ready = at + timedelta(seconds=95)
        world = len(self.nodes) * self.cards
        self.folder.event(ready, "ready", world=world, step=self.step)
        self.folder.event(ready, "model", params=PARAMS)
        for minute in range(2):
            self._look(at + minute * _MINUTE, 1.0)
        return ready

    def train(self, since: datetime, until: datetime, *, every: timedelta = _MINUTE) -> None:
        """Steps from then until then, with saves."""
        at, last_save = since, since
        while at + every <= until:
            at += every
            self.one(at, every)
            if at - last_save >= SAVE_EVERY:
                self.save(at)
                last_save = at

    def one(self, at: datetime, since_last: timedelta) -> None:
        """One line of metrics and one look at the cards."""
        steps = max(1, int(since_last.total_seconds() / STEP_SECONDS))
        self.step += steps
        loss = 2.1 + 8.2 / (1 + self.step / 900) + 0.06 * math.sin(self.step / 37)
        seconds = STEP_SECONDS * (1 + 0.05 * math.sin(self.step / 211))
        self.folder.metric(
            at, self.step, loss=loss, tokens=steps * TOKENS, seconds=seconds,
            peak_bytes=61_500_000_000,
        )  # fmt: skip
        self._look(at, 93.0 + 4 * math.sin(self.step / 97))

    def save(self, at: datetime, *, arrives: bool = True) -> None:
        """A checkpoint; of the others the last but one goes, as with two to keep."""
        old, self.saved = self.saved, self.step
        self.folder.event(at, "save_begin", step=self.step)
        self.folder.event(
            at + timedelta(seconds=11), "saved", step=self.step, seconds=10.6,
            bytes=CHECKPOINT_BYTES, path=self._path(),
        )  # fmt: skip
        if old:
            self.folder.event(at + timedelta(seconds=12), "pruned", step=old)
        facts: dict[str, Any] = {"place": PLACE, "seconds": 210.0, "bytes": CHECKPOINT_BYTES}
        kind = "uploaded" if arrives else "upload_failed"
        facts |= {} if arrives else {"error": "quota exceeded"}
        self.folder.event(at + timedelta(minutes=4), kind, step=self.step, **facts)

    def idle(self, since: datetime, until: datetime) -> None:
        """No step, and cards that do nothing."""
        at = since
        while at < until:
            self._look(at, 0.0)
            at += _MINUTE

    def stop(self, at: datetime, *, reason: str = "USR1", action: str = "requeue") -> None:
        self.folder.event(at, "stop_requested", reason=reason)
        self.save(at + timedelta(seconds=2))
        self.folder.event(at + timedelta(seconds=14), "stopped", step=self.step)
        self.folder.event(
            at + timedelta(seconds=20), "end", code=0, action=action, reason=reason, step=self.step
        )

    def _look(self, at: datetime, util: float) -> None:
        for place, node in enumerate(self.nodes):
            utils = [max(0.0, min(100.0, util - card - place)) for card in range(self.cards)]
            self.folder.look(at, node, *utils, mem=58_000_000_000)

    def _path(self) -> str:
        return f"{self.folder.folder}/checkpoints/step-{self.saved:09d}"


def fill_training(
    begin: Begin,
    files: FakeFiles,
    *,
    now: datetime,
    user: str = "member",
    second: int | None = None,
    started: datetime | None = None,
    **job: Any,
) -> TrainingSample:
    """`second` is a job of the queue that runs since `started` and is made the run's second one;
    without it one is made. The lines are written; the worker's turn reads them."""
    started = started or now - timedelta(hours=3)
    first = _first_job(begin, user, started, **job)
    folder = run_folder(begin, files, first, RUN)
    trainer = Trainer(folder, ("a100-1", "a100-2"))
    _first_stretches(trainer, started - timedelta(hours=20))
    if second is None:
        second = add_portal_job(
            begin, user, run=RUN, name="gpt-small-ddp", submit_time=started - timedelta(hours=1),
            start_time=started, nodes=2, gpus=16, node_list="a100-[1-2]",
            time_limit_minutes=2880, **job,
        )  # fmt: skip
    with begin() as session:
        training.take_up(session, [first], now=now)  # the worker did, while it ran
    later = run_folder(begin, files, second, RUN)
    trainer = replace(trainer, folder=later)
    trainer.train(trainer.begin(started), now)
    return TrainingSample(first, second, later, trainer.step)


def _first_job(begin: Begin, user: str, started: datetime, **job: Any) -> int:
    """Preempted after three hours, ended by its limit after twelve more."""
    start = started - timedelta(hours=20)
    again = start + timedelta(hours=3, minutes=40)
    common: dict[str, Any] = {"nodes": 2, "gpus": 16, "node_list": "a100-[1-2]"}
    first = add_portal_job(
        begin, user, run=RUN, name="gpt-small-ddp", state="TIMEOUT", restarts=1,
        submit_time=start - timedelta(minutes=50), start_time=again, accounted=True,
        last_submit_time=start + timedelta(hours=3), end_time=again + timedelta(hours=12),
        time_limit_minutes=720, **common, **job,
    )  # fmt: skip
    tres = {"alloc_tres": "cpu=32,gres/gpu:a100=16,gres/gpu=16,node=2", "to_settle": True}
    b.add_run(
        begin, first, state="PREEMPTED", submit_time=start - timedelta(minutes=50),
        eligible_time=start - timedelta(minutes=50), start_time=start,
        end_time=start + timedelta(hours=3), elapsed_seconds=3 * 3600, **common, **tres,
    )  # fmt: skip
    b.add_run(
        begin, first, state="TIMEOUT", submit_time=start + timedelta(hours=3),
        eligible_time=start + timedelta(hours=3, minutes=2), start_time=again, restarts=1,
        end_time=again + timedelta(hours=12), elapsed_seconds=12 * 3600, **common, **tres,
    )  # fmt: skip
    with begin() as session:
        asked = session.query(t.Submission).filter(t.Submission.job_id == first).one()
        asked.ask = {**asked.ask, "values": {"max_restarts": "3", "run_name": RUN}}
    return first


def _first_stretches(trainer: Trainer, start: datetime) -> None:
    trainer.train(trainer.begin(start), start + timedelta(hours=3))  # the last hour is lost
    again = start + timedelta(hours=3, minutes=40)
    trainer.folder.restart = 1
    stall = again + timedelta(hours=7)
    trainer.train(trainer.begin(again), stall)
    trainer.idle(stall, stall + timedelta(minutes=25))
    trainer.folder.event(
        stall + timedelta(minutes=15), "stall", signs=["steps", "cards"], rule="nothing",
        text="no step for 15 min, all cards below 5 %",
    )  # fmt: skip
    trainer.folder.event(
        stall + timedelta(minutes=15), "stacks", path=f"{trainer.folder.folder}/stacks/a100-1-1.txt"
    )
    end = again + timedelta(hours=12) - timedelta(minutes=5)
    trainer.train(stall + timedelta(minutes=25), end)
    trainer.stop(end, action="exit")
