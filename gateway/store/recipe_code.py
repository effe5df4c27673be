"""Code that was captured with recipes, once for all that have the same."""

import json
from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from gateway.core.recipe_code import digest
from gateway.core.recipes import canonical
from gateway.store.models import table_of
from gateway.store.recipe_models import RecipeCode
from gateway.store.upsert import insert_ignoring


def keep(session: Session, files: Mapping[str, str], *, now: datetime) -> str:
    """Its name."""
    name = digest(files)
    values = {"digest": name, "files": canonical(files).decode(), "at": now}
    session.execute(insert_ignoring(session, table_of(RecipeCode)), [values])
    return name


def get(session: Session, name: str) -> dict[str, str]:
    """Empty: nothing of that name was kept."""
    text = session.scalar(select(RecipeCode.files).where(RecipeCode.digest == name))
    return json.loads(text) if text else {}
