"""An administrator takes a recipe from the Library, or puts it there again: with a reason, which
stays on record."""

from datetime import datetime
from typing import TYPE_CHECKING

from gateway.core.access import Permission, Viewer
from gateway.errors import NotFound, Refused
from gateway.store import recipe_hiding, recipes
from gateway.store.uow import Begin

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

LONGEST_REASON = 500


def hide(recipe_id: int, why: str, *, viewer: Viewer, begin: Begin, now: datetime) -> None:
    """Nobody but its owner and administrators sees it any more. NotFound; Refused
    `recipe_hide_why` or `recipe_not_there`: its owner took it back, or it is hidden."""
    reason = _reason(why, viewer)
    with begin() as session:
        row = recipes.get(session, recipe_id, viewer)
        if row is None:
            raise NotFound(f"no recipe {recipe_id}")
        if row.retracted_at is not None:
            raise Refused("recipe_not_there")
        recipes.retract(session, recipe_id, now=now)
        _note(session, recipe_id, hidden=True, why=reason, viewer=viewer, now=now)


def unhide(recipe_id: int, why: str, *, viewer: Viewer, begin: Begin, now: datetime) -> None:
    """As it was. NotFound also for one that no administrator has hidden."""
    reason = _reason(why, viewer)
    with begin() as session:
        row = recipes.get(session, recipe_id, viewer)
        if row is None or recipe_hiding.hidden(session, recipe_id) is None:
            raise NotFound(f"no hidden recipe {recipe_id}")
        recipes.bring_back(session, recipe_id, row.recipe)
        _note(session, recipe_id, hidden=False, why=reason, viewer=viewer, now=now)


def _note(
    session: "Session", recipe_id: int, *, hidden: bool, why: str, viewer: Viewer, now: datetime
) -> None:
    recipe_hiding.note(
        session, recipe_id, person_id=viewer.person_id, hidden=hidden, why=why, now=now
    )


def _reason(why: str, viewer: Viewer) -> str:
    if not viewer.may(Permission.MANAGE_RECIPES):
        raise NotFound("recipes of others")
    text = " ".join(why.split())
    if not text or len(text) > LONGEST_REASON or not text.isprintable():
        raise Refused("recipe_hide_why", field="why", most=LONGEST_REASON)
    return text
