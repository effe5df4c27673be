"""A recipe as a file: one JSON object with its fingerprint. Of a file nothing is believed."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from gateway.core import recipe_code as code_rules
from gateway.core import recipes as core
from gateway.core.access import Viewer
from gateway.core.recipes import Recipe
from gateway.errors import BadMessage, Refused
from gateway.services.recipe_publish import keep, sharing
from gateway.store import recipe_code, recipes
from gateway.store.recipes import NewRecipe, RecipeRow
from gateway.store.uow import Begin
from gateway.wire import codec

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

LARGEST = 2**21 - 2**16  # bytes: code is written with escapes; the portal takes 2 MiB in all
_DEEPEST = 8
_KEYS = frozenset({"sluice_recipe", "fingerprint", "recipe", "files"})


class BadFile(Refused):
    """The file is no recipe that could be taken; the code says why."""


@dataclass(frozen=True, slots=True)
class Read:
    """A recipe, and the code that goes with it."""

    recipe: Recipe
    files: dict[str, str]


def export(session: "Session", row: RecipeRow) -> str:
    """The file's text, the same each time."""
    code = row.recipe.code
    whole = {
        "sluice_recipe": core.FORMAT,
        "fingerprint": row.fingerprint,
        "recipe": codec.dump(row.recipe),
        "files": recipe_code.get(session, code.captured) if code and code.captured else {},
    }
    return json.dumps(whole, ensure_ascii=False, sort_keys=True, indent=1) + "\n"


def read(content: bytes) -> Read:
    """What a file says, held to all that a recipe made here is held to. BadFile."""
    if len(content) > LARGEST:
        raise BadFile("recipe_file_large", field="file", most=LARGEST // 1024)
    whole = _json(content)
    if not isinstance(whole, dict) or "sluice_recipe" not in whole:
        raise BadFile("recipe_file_other", field="file")
    if type(whole["sluice_recipe"]) is not int or whole["sluice_recipe"] != core.FORMAT:
        raise BadFile("recipe_file_version", field="file", format=core.FORMAT)
    if whole.keys() != _KEYS:
        raise BadFile("recipe_file_other", field="file")
    try:
        recipe = codec.parse(Recipe, whole["recipe"])
    except BadMessage as error:
        raise BadFile("recipe_file_field", field="file", what=str(error)[:300]) from error
    if core.fingerprint(codec.dump(recipe)) != whole["fingerprint"]:
        raise BadFile("recipe_file_fingerprint", field="file")
    return Read(recipe, _files(recipe, whole["files"]))


def _files(recipe: Recipe, files: Any) -> dict[str, str]:
    named = recipe.code.captured if recipe.code else ""
    if not named and files == {}:
        return {}
    texts = isinstance(files, dict) and all(isinstance(text, str) for text in files.values())
    try:
        if not texts:
            raise ValueError("no texts")
        code_rules.require(files)
        if code_rules.digest(files) != named:
            raise BadFile("recipe_file_fingerprint", field="file")
    except ValueError as error:
        raise BadFile("recipe_file_field", field="file", what=f"files: {error}") from error
    return dict(files)


def take(
    content: bytes, *, visibility: str, group: str, viewer: Viewer, begin: Begin, now: datetime
) -> int:
    """Kept as from elsewhere, unless this site has it for this person already. Its id."""
    found = read(content)
    recipe = found.recipe
    chosen, named = sharing(viewer, visibility, group)
    with begin() as session:
        here = recipes.by_fingerprint(session, core.fingerprint(codec.dump(recipe)), viewer)
        if here:
            return here[0].id
        if found.files:
            recipe_code.keep(session, found.files, now=now)
        new = NewRecipe(viewer.person_id, chosen, named, recipe, elsewhere=True)
        return keep(session, new, now=now)


def _json(content: bytes) -> Any:
    try:
        text = content.decode("utf-8")
        _look_at_depth(text)
        return json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise BadFile("recipe_file_json", field="file") from error


def _look_at_depth(text: str) -> None:
    """Before the parser goes down into it: a bracket in a text counts too little to matter."""
    depth, in_text, escaped = 0, False, False
    for character in text:
        if in_text:
            in_text = escaped or character != '"'
            escaped = character == "\\" and not escaped
        elif character == '"':
            in_text, escaped = True, False
        elif character in "[{":
            depth += 1
            if depth > _DEEPEST:
                raise ValueError("too deep")
        elif character in "]}":
            depth -= 1


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key twice")
    return found


def _no_number(word: str) -> Any:
    raise ValueError(word)
