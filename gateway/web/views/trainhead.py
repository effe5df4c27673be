"""What the head of a job's page shows of its training: checkpoints on the timeline, a stall."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from gateway.store.queries import training
from gateway.web.texts import gettext
from gateway.web.timeline import Stretch, ticks
from gateway.web.training_texts import moment_of, stall_text

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


@dataclass(frozen=True, slots=True)
class Tick:
    """A checkpoint on the timeline, in percent of it."""

    at: float
    word: str


@dataclass(frozen=True, slots=True)
class TrainHead:
    """`told`: the run folder has told something. `silent`: it is read, and has told nothing.
    `stalled` is the last stall in words, while no step has followed it."""

    told: bool
    silent: bool
    saves: list[Tick]
    stalled: str


@dataclass(frozen=True, slots=True)
class Heard:
    brief: training.Brief | None
    followed: bool


def hear(session: "Session", job_id: int) -> Heard:
    return Heard(training.brief(session, job_id), training.is_followed(session, job_id))


def head(heard: Heard, stretches: Sequence[Stretch], *, now: datetime) -> TrainHead:
    brief = heard.brief
    found = brief.saves if brief else ()
    places = ticks([moment_of(at) for at, _ in found], stretches, now=now)
    return TrainHead(
        told=brief is not None,
        silent=brief is None and heard.followed,
        saves=[
            Tick(place, gettext("Checkpoint of step %(step)s", step=step))
            for place, (_, step) in zip(places, found, strict=False)
        ],
        stalled=stall_text(brief.stall) if brief and brief.stall else "",
    )
