"""What a clone leaves out, and what it tells of what has moved."""

from dataclasses import replace
from typing import Any

import pytest

from gateway.core.environments import NONE, Environment, EnvironmentKind
from gateway.core.manifest import Text
from gateway.core.recipes import (
    Code,
    DatasetUsed,
    EnvironmentUsed,
    Recipe,
    Shape,
    TemplateUsed,
    Visibility,
)
from gateway.services import recipe_clone
from gateway.services.recipe_clone import Clone
from gateway.services.recipe_parts import environment_used, template_fingerprint
from gateway.store import recipes
from gateway.store.recipes import NewRecipe
from gateway.store.uow import Begin
from gateway.testing import builders as b
from gateway.testing import portal as portals
from gateway.testing.money import one_credit_an_hour
from gateway.testing.portal import Portal
from gateway.testing.recipe_samples import recipe

VENV = Environment("torch", Text("T", "T"), EnvironmentKind.VENV, path="/opt/envs/torch")


@pytest.fixture
def portal(begin: Begin) -> Portal:
    return portals.portal(begin)


def cloned(portal: Portal, made: Recipe, *environments: Environment) -> Clone:
    portal.poll_policy()
    with portal.begin() as session:
        new = NewRecipe(portal.viewer.person_id, Visibility.SITE, None, made)
        recipe_id, _ = recipes.add(session, new, now=b.NOW)
        row = recipes.get(session, recipe_id, portal.viewer)
    assert row is not None
    site = recipe_clone.Site(
        portal.viewer, portal.begin, portal.catalogue, (NONE, *environments), portal.now
    )
    return recipe_clone.clone(row, site=site)


def same(portal: Portal, **changes: Any) -> Recipe:
    ddp = portal.catalogue.get("ddp")
    assert ddp is not None
    return recipe(**({"template": TemplateUsed("ddp", template_fingerprint(ddp))} | changes))


def codes(made: Clone) -> dict[str, bool]:
    return {one.code: one.left_out for one in made.moved}


def test_where_nothing_has_moved_the_form_is_the_same_job(portal: Portal) -> None:
    found = cloned(portal, same(portal))
    assert codes(found) == {}
    assert found.ask.values == {"script": "train.py", "arguments": "--seed 7"}
    assert (found.ask.group, found.ask.partition, found.ask.qos) == ("nlp", "a100", "normal")
    assert found.ask.working_directory == "~"


@pytest.mark.parametrize(
    ("changes", "code", "left_out"),
    [
        ({"template": TemplateUsed("gone")}, "recipe_template_gone", True),
        ({"template": TemplateUsed("ddp")}, "recipe_template_unknown", False),
        ({"template": TemplateUsed("ddp", "0" * 64)}, "recipe_template_changed", False),
        ({"values": {"script": "train.py", "other": "x"}}, "recipe_field_gone", True),
        ({"values": {"script": "$(id)"}}, "recipe_value_refused", True),
        ({"environment": EnvironmentUsed("gone", "venv")}, "recipe_environment_gone", True),
        (
            {"environment": EnvironmentUsed("snapshot:abc", "snapshot", snapshot="a" * 64)},
            "recipe_snapshot_gone",
            True,
        ),
        (
            {
                "values": {"script": "train.py", "datasets": "secret@2"},
                "datasets": (DatasetUsed("secret", 2),),
            },
            "recipe_dataset_gone",
            True,
        ),
        ({"shape": Shape("other", "normal", "", 1, 2, 2, "60")}, "recipe_partition_gone", False),
        ({"shape": Shape("a100", "none", "a100", 1, 2, 2, "60")}, "recipe_qos_gone", False),
        ({"shape": Shape("a100", "normal", "b200", 1, 2, 2, "60")}, "recipe_gpu_gone", True),
        ({"code": Code("a" * 40, clean=True)}, "recipe_code", False),
        ({"code": Code("a" * 40)}, "recipe_code_dirty", False),
    ],
)
def test_what_has_moved_is_told_and_never_copied(
    portal: Portal, changes: dict[str, Any], code: str, left_out: bool
) -> None:
    found = cloned(portal, same(portal, **changes))
    assert codes(found)[code] is left_out
    typed = " ".join([*found.ask.values.values(), found.ask.environment, found.ask.gpu_type])
    for never in ("$(id)", "secret", "gone", "snapshot:", "b200", "other"):
        assert never not in typed


def test_an_environment_that_means_something_else_is_told(portal: Portal) -> None:
    with portal.begin() as session:
        then = environment_used(session, VENV)
    moved = replace(VENV, path="/opt/envs/torch-new")

    unlocked = cloned(portal, same(portal, environment=then), VENV)
    assert codes(unlocked) == {"recipe_environment_unlocked": False}
    assert unlocked.ask.environment == "torch"
    told = codes(cloned(portal, same(portal, environment=then, title="2"), moved))
    assert told == {"recipe_environment_moved": False}


def test_places_of_one_person_are_no_part_of_a_form(portal: Portal) -> None:
    values = {"script": "train.py", "checkpoint_dir": "/home/a/x", "run_name": "mine"}
    assert cloned(portal, same(portal, values=values)).ask.values == {"script": "train.py"}


def test_another_price_is_told_with_both(portal: Portal) -> None:
    one_credit_an_hour(portal.begin, "a100")
    then = replace(recipe().receipt, quoted=1)
    found = cloned(portal, same(portal, receipt=then))
    assert found.now is not None
    assert {one.code: one.facts for one in found.moved}["recipe_price_changed"] == {
        "then": 1,
        "now": found.now,
    }
