"""The tables of recipes. Nothing outside `store` imports this module.

What a search looks at is in a table of the database's own making, `recipe_words` (FTS5 of SQLite, a
tsvector on PostgreSQL; migration 0022): SQLAlchemy has no words for it.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, Index, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from gateway.store.models import Base


class SubmissionParts(Base):
    """What a submission was made of, as it was then: fingerprints of its template and environment.
    A recipe takes them from here, for either may have changed when the run is over."""

    __tablename__ = "submission_parts"

    submission_id: Mapped[int] = mapped_column(ForeignKey("submission.id"), primary_key=True)
    template: Mapped[str]
    environment: Mapped[dict[str, Any]]  # core.recipes.EnvironmentUsed


class Recipe(Base):
    """A published recipe. `document` is core.recipes.Recipe as text, and `fingerprint` its
    SHA-256; the columns beside it are what lists filter by. `elsewhere`: it came from a file, so
    its receipt was measured somewhere else. `parent_id`: it was cloned from that one."""

    __tablename__ = "recipe"
    __table_args__ = (
        CheckConstraint("visibility in ('me','group','site')", name="visibility_known"),
        UniqueConstraint("person_id", "fingerprint"),
        Index(None, "fingerprint"),
        Index(None, "parent_id"),
        Index(None, "job_id"),
        Index(None, "retracted_at", "created_at"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    fingerprint: Mapped[str]
    person_id: Mapped[int] = mapped_column(ForeignKey("person.id"))
    visibility: Mapped[str]
    group: Mapped[str | None] = mapped_column("group_name")
    document: Mapped[str] = mapped_column(Text)
    title: Mapped[str]
    template: Mapped[str]
    model: Mapped[str]
    gpus: Mapped[int]
    gpu_type: Mapped[str]
    cost: Mapped[int | None] = mapped_column(BigInteger)  # millionths, as the receipt says
    elsewhere: Mapped[bool]
    parent_id: Mapped[int | None] = mapped_column(ForeignKey("recipe.id"))
    job_id: Mapped[int | None] = mapped_column(ForeignKey("job.id"))
    created_at: Mapped[datetime]
    retracted_at: Mapped[datetime | None]


class RecipeCode(Base):
    """Files that were captured with recipes: core.recipe_code's text, named by its SHA-256."""

    __tablename__ = "recipe_code"

    digest: Mapped[str] = mapped_column(primary_key=True)
    files: Mapped[str] = mapped_column(Text)
    at: Mapped[datetime]


class RecipeHiding(Base):
    """An administrator's act: a recipe taken from the Library, or put there again, and why. Rows
    are only added; the newest one holds."""

    __tablename__ = "recipe_hiding"
    __table_args__ = (Index(None, "recipe_id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    recipe_id: Mapped[int] = mapped_column(ForeignKey("recipe.id"))
    person_id: Mapped[int] = mapped_column(ForeignKey("person.id"))
    hidden: Mapped[bool]
    why: Mapped[str] = mapped_column(Text)
    at: Mapped[datetime]


class RecipeLabel(Base):
    """What filters ask for: a tag, a dataset's name, or the model in small letters."""

    __tablename__ = "recipe_label"
    __table_args__ = (Index(None, "kind", "name", "recipe_id"),)

    recipe_id: Mapped[int] = mapped_column(ForeignKey("recipe.id"), primary_key=True)
    kind: Mapped[str] = mapped_column(primary_key=True)  # tag, dataset, model
    name: Mapped[str] = mapped_column(primary_key=True)


class RecipeRerun(Base):
    """A submission made from a recipe. `kind` rerun: sent to check it; clone: a form that was
    filled from it; `changed`: something of the form was. `match` is core.recipe_match.Match once
    the job is over; `within`: the greatest deviation's class in percent (1, 5; 100: beyond),
    None: nothing could be compared. `state`: waiting, done, failed."""

    __tablename__ = "recipe_rerun"
    __table_args__ = (
        CheckConstraint("kind in ('rerun','clone')", name="kind_known"),
        CheckConstraint("state in ('waiting','done','failed')", name="state_known"),
        Index(None, "recipe_id", "state"),
        Index(None, "state"),
    )

    submission_id: Mapped[int] = mapped_column(ForeignKey("submission.id"), primary_key=True)
    recipe_id: Mapped[int] = mapped_column(ForeignKey("recipe.id"))
    kind: Mapped[str]
    changed: Mapped[bool]
    state: Mapped[str]
    within: Mapped[int | None]
    match: Mapped[dict[str, Any]]
    at: Mapped[datetime]
