"""Submissions that were made from recipes, and how well what they measured fits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import case, func, or_, select, update
from sqlalchemy.orm import Session

from gateway.store.models import Job, Person, Submission, table_of
from gateway.store.recipe_models import Recipe, RecipeRerun
from gateway.store.training_models import TrainingFollow
from gateway.store.upsert import insert_ignoring

_R = table_of(RecipeRerun).c
NEVER_A_JOB = ("refused", "withdrawn")


@dataclass(frozen=True, slots=True)
class RerunRow:
    """See recipe_models.RecipeRerun; with the job, where there is one, and who sent it."""

    submission_id: int
    recipe_id: int
    kind: str
    changed: bool
    state: str
    within: int | None
    match: Mapping[str, Any]
    at: datetime
    who: str
    job_id: int | None
    slurm_id: int | None
    user: str | None
    group: str | None


@dataclass(frozen=True, slots=True)
class Due:
    """One whose job is over, or that never was one. `job_state` None: it never was."""

    submission_id: int
    recipe_id: int
    document: str
    job_id: int | None
    job_state: str | None
    person_id: int


@dataclass(frozen=True, slots=True)
class Tally:
    """Of a recipe: how many ended, and how many of those were within 1 and 5 percent in all that
    could be compared. Only what changed nothing counts."""

    ended: int = 0
    compared: int = 0
    within_1: int = 0
    within_5: int = 0
    waiting: int = 0
    failed: int = 0
    last_at: datetime | None = None


def note(
    session: Session, submission_id: int, recipe_id: int, *, kind: str, changed: bool, now: datetime
) -> None:
    """Once a submission, whatever is sent twice."""
    values = {
        "submission_id": submission_id,
        "recipe_id": recipe_id,
        "kind": kind,
        "changed": changed,
        "state": "waiting",
        "match": {},
        "at": now,
    }
    session.execute(insert_ignoring(session, table_of(RecipeRerun)), values)


def of_submission(session: Session, submission_id: int) -> tuple[int, bool] | None:
    """The recipe that a submission was made from, and whether it changed anything."""
    query = select(_R.recipe_id, _R.changed).where(_R.submission_id == submission_id)
    row = session.execute(query).one_or_none()
    return None if row is None else (row[0], row[1])


def of_recipe(session: Session, recipe_id: int, *, most: int = 50) -> list[RerunRow]:
    """The newest first."""
    query = (
        select(
            *(_R[name] for name in list(RerunRow.__slots__)[:8]),
            *(Person.display_name, Job.id, Job.slurm_id, Job.user, Job.group),
        )
        .join(Submission, Submission.id == _R.submission_id)
        .join(Person, Person.id == Submission.person_id)
        .outerjoin(Job, Job.id == Submission.job_id)
        .where(_R.recipe_id == recipe_id)
        .order_by(_R.at.desc(), _R.submission_id.desc())
        .limit(most)
    )
    return [RerunRow(*tuple(row)) for row in session.execute(query)]


def due(session: Session, *, ended_before: datetime, limit: int = 50) -> list[Due]:
    """Waiting ones whose job is over and has told all: its run folder was read to its end, or the
    end is older than `ended_before`."""
    told = or_(
        TrainingFollow.job_id.is_(None) & (Job.end_time < ended_before),
        TrainingFollow.due_at.is_(None) & TrainingFollow.job_id.is_not(None),
        Job.end_time < ended_before,
    )
    over = Job.active.is_(False) & Job.end_time.is_not(None) & told
    query = (
        select(
            *(_R.submission_id, _R.recipe_id, Recipe.document, Job.id, Job.state),
            Submission.person_id,
        )
        .join(Recipe, Recipe.id == _R.recipe_id)
        .join(Submission, Submission.id == _R.submission_id)
        .outerjoin(Job, Job.id == Submission.job_id)
        .outerjoin(TrainingFollow, TrainingFollow.job_id == Job.id)
        .where(_R.state == "waiting", or_(over, Submission.state.in_(NEVER_A_JOB)))
        .order_by(_R.submission_id)
        .limit(limit)
    )
    return [Due(*row) for row in session.execute(query)]


def finish(
    session: Session,
    submission_id: int,
    *,
    state: str,
    within: int | None,
    match: Mapping[str, Any],
    now: datetime,
) -> bool:
    """Once: whoever comes second changes nothing."""
    done = session.execute(
        update(table_of(RecipeRerun))
        .where(_R.submission_id == submission_id, _R.state == "waiting")
        .values(state=state, within=within, match=dict(match), at=now)
        .returning(_R.submission_id)
    )
    return done.one_or_none() is not None


def tallies(session: Session, recipe_ids: Sequence[int]) -> dict[int, Tally]:
    """By recipe; none without any."""

    def count(which: Any) -> Any:
        return func.sum(case((which, 1), else_=0))

    done = (_R.state == "done") & _R.changed.is_(False)
    query = (
        select(
            _R.recipe_id,
            *(count(done), count(done & _R.within.is_not(None))),
            *(count(done & (_R.within <= 1)), count(done & (_R.within <= 5))),
            count(_R.state == "waiting"),
            count((_R.state == "failed") & _R.changed.is_(False)),
            func.max(case((done, _R.at))),
        )
        .where(_R.recipe_id.in_(list(recipe_ids)))
        .group_by(_R.recipe_id)
    )
    return {row[0]: Tally(*row[1:]) for row in session.execute(query)}
