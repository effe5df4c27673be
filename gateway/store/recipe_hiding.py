"""Recipes that administrators took from the Library: who did it, when and why."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from gateway.store.models import Person, table_of
from gateway.store.recipe_models import RecipeHiding

_H = table_of(RecipeHiding).c


@dataclass(frozen=True, slots=True)
class Hiding:
    """`hidden` False: it was put there again."""

    who: str  # the display name
    hidden: bool
    why: str
    at: datetime


def note(
    session: Session, recipe_id: int, *, person_id: int, hidden: bool, why: str, now: datetime
) -> None:
    values = {
        "recipe_id": recipe_id,
        "person_id": person_id,
        "hidden": hidden,
        "why": why,
        "at": now,
    }
    session.execute(insert(table_of(RecipeHiding)), values)


def of_recipe(session: Session, recipe_id: int) -> list[Hiding]:
    """The newest first; the first one holds."""
    query = (
        select(Person.display_name, _H.hidden, _H.why, _H.at)
        .join(Person, Person.id == _H.person_id)
        .where(_H.recipe_id == recipe_id)
        .order_by(_H.id.desc())
    )
    return [Hiding(*row) for row in session.execute(query)]


def hidden(session: Session, recipe_id: int) -> Hiding | None:
    """Why it is not in the Library; None: no administrator took it from there."""
    found = of_recipe(session, recipe_id)
    return found[0] if found and found[0].hidden else None
