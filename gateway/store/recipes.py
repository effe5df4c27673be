"""Recipes: kept, found, and what was made from them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, exists, func, insert, or_, select, text, update
from sqlalchemy.orm import Session

from gateway.core import recipes as core
from gateway.core.access import Permission, Viewer
from gateway.core.recipes import Visibility
from gateway.core.search_words import words
from gateway.store.models import Job, Person, table_of
from gateway.store.recipe_models import Recipe, RecipeLabel, SubmissionParts
from gateway.store.upsert import insert_if_new
from gateway.wire import codec

_R, _L = table_of(Recipe).c, table_of(RecipeLabel).c
PAGE = 24

_FIND = {
    "sqlite": text("SELECT rowid FROM recipe_words WHERE recipe_words MATCH :asked"),
    "postgresql": text("SELECT recipe_id FROM recipe_words WHERE words @@ cast(:asked AS tsquery)"),
}
_KEEP = {
    "sqlite": text("INSERT INTO recipe_words (rowid, words) VALUES (:id, :words)"),
    # The words are made already: PostgreSQL must not look for others in them.
    "postgresql": text(
        "INSERT INTO recipe_words (recipe_id, words)"
        " VALUES (:id, array_to_tsvector(string_to_array(:words, ' ')))"
    ),
}
_DROP = {
    "sqlite": text("DELETE FROM recipe_words WHERE rowid = :id"),
    "postgresql": text("DELETE FROM recipe_words WHERE recipe_id = :id"),
}


@dataclass(frozen=True, slots=True)
class RecipeRow:
    """A recipe as it is kept, whose it is, and the job that it was made of."""

    id: int
    fingerprint: str
    person_id: int
    login: str
    owner: str  # the display name
    visibility: Visibility
    group: str | None
    recipe: core.Recipe
    elsewhere: bool
    parent_id: int | None
    job_id: int | None
    slurm_id: int | None
    created_at: datetime
    retracted_at: datetime | None


@dataclass(frozen=True, slots=True)
class NewRecipe:
    person_id: int
    visibility: Visibility
    group: str | None
    recipe: core.Recipe
    elsewhere: bool = False
    parent_id: int | None = None
    job_id: int | None = None


@dataclass(frozen=True, slots=True)
class Filters:
    """What a search asks for; empty or None: anything. `gpus` is the most cards of a job, `cost`
    the most that it cost (millionths)."""

    asked: tuple[str, ...] = ()  # core.search_words.asked
    template: str = ""
    model: str = ""
    gpus: int | None = None
    gpu_type: str = ""
    cost: int | None = None
    dataset: str = ""
    tag: str = ""
    mine: int | None = None  # a person's id
    order: str = "new"  # new, cheap, small


def note_parts(
    session: Session, submission_id: int, *, template: str, environment: core.EnvironmentUsed
) -> None:
    """What a submission is made of, in the transaction that keeps it."""
    values = {
        "submission_id": submission_id,
        "template": template,
        "environment": codec.dump(environment),
    }
    session.execute(insert(table_of(SubmissionParts)), values)


def parts(session: Session, submission_id: int) -> tuple[str, core.EnvironmentUsed] | None:
    found = session.get(SubmissionParts, submission_id)
    if found is None:
        return None
    return found.template, codec.parse(core.EnvironmentUsed, found.environment)


def add(session: Session, new: NewRecipe, *, now: datetime) -> tuple[int, bool]:
    """Its id, and whether it is new: one that this person published already stays as it is."""
    recipe = new.recipe
    document = codec.dump(recipe)
    values = {
        "fingerprint": core.fingerprint(document),
        "person_id": new.person_id,
        "visibility": new.visibility.value,
        "group_name": new.group,
        "document": core.canonical(document).decode(),
        "title": recipe.title,
        "template": recipe.template.name,
        "model": recipe.model,
        "gpus": recipe.receipt.gpus,
        "gpu_type": recipe.receipt.gpu_type,
        "cost": recipe.receipt.cost,
        "elsewhere": new.elsewhere,
        "parent_id": new.parent_id,
        "job_id": new.job_id,
        "created_at": now,
    }
    made = insert_if_new(session, table_of(Recipe), values)
    if made is None:
        mine = select(_R.id).where(
            _R.person_id == new.person_id, _R.fingerprint == values["fingerprint"]
        )
        return session.execute(mine).scalar_one(), False
    labels = [{"recipe_id": made, "kind": kind, "name": name} for kind, name in _labels(recipe)]
    if labels:
        session.execute(insert(table_of(RecipeLabel)), labels)
    session.execute(_own(session, _KEEP), {"id": made, "words": words(_texts(recipe))})
    return made, True


def share(session: Session, recipe_id: int, visibility: Visibility, group: str | None) -> None:
    changed = {"visibility": visibility.value, "group_name": group}
    session.execute(update(table_of(Recipe)).where(_R.id == recipe_id).values(**changed))


def retract(session: Session, recipe_id: int, *, now: datetime) -> None:
    """Nobody finds it any more; what was cloned from it keeps its parent."""
    session.execute(update(table_of(Recipe)).where(_R.id == recipe_id).values(retracted_at=now))
    session.execute(_own(session, _DROP), {"id": recipe_id})


def bring_back(session: Session, recipe_id: int, recipe: core.Recipe) -> None:
    """Published again, whether it was retracted or not."""
    session.execute(update(table_of(Recipe)).where(_R.id == recipe_id).values(retracted_at=None))
    session.execute(_own(session, _DROP), {"id": recipe_id})
    session.execute(_own(session, _KEEP), {"id": recipe_id, "words": words(_texts(recipe))})


def get(session: Session, recipe_id: int, viewer: Viewer) -> RecipeRow | None:
    """One that this person may see; a retracted one is there for its owner, and for administrators,
    who see all but what only its owner does."""
    seen = or_(_visible(viewer), Recipe.person_id == viewer.person_id)
    if viewer.may(Permission.MANAGE_RECIPES):
        seen = or_(seen, Recipe.visibility != Visibility.ME.value)
    row = session.execute(_rows().where(Recipe.id == recipe_id, seen)).one_or_none()
    return None if row is None else _row(row)


def by_fingerprint(session: Session, start: str, viewer: Viewer) -> list[RecipeRow]:
    """Those whose fingerprint begins so, at most two."""
    end = start + "g"  # behind every hexadecimal digit
    found = _rows().where(Recipe.fingerprint >= start, Recipe.fingerprint < end)
    found = found.where(_visible(viewer)).order_by(Recipe.id).limit(2)
    return [_row(row) for row in session.execute(found)]


def of_job(session: Session, job_id: int, viewer: Viewer) -> list[tuple[int, str]]:
    """Recipes that were made of a job: id and title."""
    found = select(_R.id, _R.title).where(_R.job_id == job_id, _visible(viewer)).order_by(_R.id)
    return [(row[0], row[1]) for row in session.execute(found)]


def search(
    session: Session, viewer: Viewer, wanted: Filters, *, skip: int = 0, limit: int = PAGE
) -> tuple[list[RecipeRow], bool]:
    """A page of what is found, and whether there is more."""
    order: dict[str, list[Any]] = {
        "cheap": [_R.cost.is_(None), _R.cost],
        "small": [_R.gpus],
    }
    by = [*order.get(wanted.order, []), _R.created_at.desc(), _R.id.desc()]
    ids = select(_R.id).where(_visible(viewer), *_conditions(session, wanted))
    page = session.execute(ids.order_by(*by).offset(skip).limit(limit + 1)).scalars().all()
    rows = {row.id: row for row in map(_row, session.execute(_rows().where(_R.id.in_(page))))}
    return [rows[one] for one in page[:limit]], len(page) > limit


def count(session: Session, viewer: Viewer, wanted: Filters) -> int:
    found = select(func.count()).where(_visible(viewer), *_conditions(session, wanted))
    return session.execute(found.select_from(table_of(Recipe))).scalar_one()


def choices(session: Session, viewer: Viewer, *, most: int = 50) -> dict[str, list[str]]:
    """What filters may be set to: the commonest values of what this person sees."""
    found: dict[str, list[str]] = {}
    for name in ("template", "gpu_type"):
        column = _R[name]
        query = select(column).where(_visible(viewer), column != "").group_by(column)
        rows = session.execute(query.order_by(func.count().desc(), column).limit(most))
        found[name] = sorted(row[0] for row in rows)
    labels = (
        select(_L.kind, _L.name, func.count())
        .join(table_of(Recipe), _R.id == _L.recipe_id)
        .where(_visible(viewer))
        .group_by(_L.kind, _L.name)
        .order_by(func.count().desc(), _L.name)
    )
    for kind, name, _ in session.execute(labels):
        if len(found.setdefault(kind, [])) < most:
            found[kind].append(name)
    return found


def children(session: Session, recipe_id: int, viewer: Viewer) -> list[RecipeRow]:
    """Those cloned from it, the newest first."""
    query = _rows().where(Recipe.parent_id == recipe_id, _visible(viewer))
    return [_row(row) for row in session.execute(query.order_by(_R.id.desc()).limit(50))]


def _conditions(session: Session, wanted: Filters) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if wanted.asked:
        query = _own(session, _FIND).bindparams(asked=_query(session, wanted.asked))
        found.append(_R.id.in_(query.columns(_R.id).scalar_subquery()))
    for name in ("template", "gpu_type"):
        if getattr(wanted, name):
            found.append(_R[name] == getattr(wanted, name))
    for name in ("gpus", "cost"):
        if getattr(wanted, name) is not None:
            found.append(_R[name] <= getattr(wanted, name))
    labels = {"tag": wanted.tag, "dataset": wanted.dataset, "model": wanted.model}
    for kind, name in labels.items():
        if name:
            named = and_(_L.recipe_id == _R.id, _L.kind == kind, _L.name == name.casefold())
            found.append(exists().where(named))
    if wanted.mine is not None:
        found.append(_R.person_id == wanted.mine)
    return found


def _query(session: Session, asked: Sequence[str]) -> str:
    """Beginnings of words, all of them; they hold letters and digits alone."""
    if _is_sqlite(session):
        return " ".join(f'"{word}"*' for word in asked)
    return " & ".join(f"'{word}':*" for word in asked)


def _visible(viewer: Viewer) -> ColumnElement[bool]:
    return and_(
        _R.retracted_at.is_(None),
        or_(
            _R.visibility == Visibility.SITE.value,
            _R.person_id == viewer.person_id,
            and_(_R.visibility == Visibility.GROUP.value, _R.group_name.in_(list(viewer.groups))),
        ),
    )


def _rows() -> Any:
    return (
        select(
            *(_R.id, _R.fingerprint, _R.person_id, Person.login, Person.display_name),
            *(_R.visibility, _R.group_name, _R.document, _R.elsewhere, _R.parent_id, _R.job_id),
            *(Job.slurm_id, _R.created_at, _R.retracted_at),
        )
        .select_from(table_of(Recipe))
        .join(Person, Person.id == _R.person_id)
        .outerjoin(Job, Job.id == _R.job_id)
    )


def _row(row: Sequence[Any]) -> RecipeRow:
    values = dict(zip(RecipeRow.__slots__, row, strict=True))
    values["visibility"] = Visibility(values["visibility"])
    values["recipe"] = codec.parse(core.Recipe, json.loads(values["recipe"]))
    return RecipeRow(**values)


def _labels(recipe: core.Recipe) -> set[tuple[str, str]]:
    found = {("tag", tag.casefold()) for tag in recipe.tags}
    found |= {("dataset", one.name) for one in recipe.datasets}
    if recipe.model:
        found.add(("model", recipe.model.casefold()))
    return found


def _texts(recipe: core.Recipe) -> Iterable[str]:
    yield from (recipe.title, recipe.model, *recipe.tags, recipe.template.name)
    yield from (one.name for one in recipe.datasets)
    yield from (recipe.receipt.gpu_type, recipe.environment.name, recipe.summary)


def _own(session: Session, statements: Mapping[str, Any]) -> Any:
    return statements[session.get_bind().dialect.name]


def _is_sqlite(session: Session) -> bool:
    return session.get_bind().dialect.name == "sqlite"
