"""Recipes for programs: the API and `sluice recipe --json` say the same."""

from typing import Any

from gateway.services.recipe_clone import Clone
from gateway.store.recipe_reruns import RerunRow, Tally
from gateway.store.recipes import RecipeRow
from gateway.wire import codec


def fields(row: RecipeRow, tally: Tally | None = None, *, whole: bool = False) -> dict[str, Any]:
    """Money is in millionths of the currency, times in seconds."""
    recipe, runs = row.recipe, tally or Tally()
    found: dict[str, Any] = {
        "id": row.id,
        "fingerprint": row.fingerprint,
        "title": recipe.title,
        "model": recipe.model,
        "tags": list(recipe.tags),
        "template": recipe.template.name,
        "owner": row.login,
        "visibility": row.visibility.value,
        "group": row.group,
        "elsewhere": row.elsewhere,
        "parent": row.parent_id,
        "job": row.slurm_id,
        "published_at": row.created_at.isoformat(),
        "receipt": codec.dump(recipe.receipt),
        "reruns": {
            "compared": runs.compared,
            "within_1_percent": runs.within_1,
            "within_5_percent": runs.within_5,
            "failed": runs.failed,
            "waiting": runs.waiting,
        },
    }
    return found | ({"recipe": codec.dump(recipe)} if whole else {})


def clone_fields(made: Clone) -> dict[str, Any]:
    return {
        "ask": codec.dump(made.ask),
        "moved": [codec.dump(one) for one in made.moved],
        "quoted_then": made.quoted,
        "quoted_now": made.now,
    }


def rerun_fields(row: RerunRow) -> dict[str, Any]:
    names = ("submission_id", "kind", "changed", "state", "within", "slurm_id", "who")
    found = {name: getattr(row, name) for name in names}
    return found | {"at": row.at.isoformat(), "figures": row.match.get("figures", [])}
