"""The search of recipes on each database: words, filters, who sees what, pages."""

from datetime import timedelta

import pytest

from gateway.core.recipes import DatasetUsed, Recipe, Visibility
from gateway.core.search_words import asked
from gateway.store import recipe_reruns, recipes
from gateway.store.recipes import Filters, NewRecipe
from gateway.store.uow import Begin
from gateway.testing import builders as b
from gateway.testing.recipe_samples import recipe


def add(begin: Begin, person: int, made: Recipe, visibility: Visibility = Visibility.SITE) -> int:
    with begin() as session:
        return recipes.add(session, NewRecipe(person, visibility, "nlp", made), now=b.NOW)[0]


def titles(begin: Begin, wanted: Filters, *, groups: tuple[str, ...] = ("nlp",)) -> list[str]:
    viewer = b.viewer("reader", person_id=999, groups=groups)
    with begin() as session:
        return [row.recipe.title for row in recipes.search(session, viewer, wanted)[0]]


@pytest.mark.parametrize(
    "text", ["llama", "LLAM", "中文", "中", "文摘要", "llama 摘要", "ddp", "gpt-2", "openwebtext"]
)
def test_words_of_both_languages_are_found(begin: Begin, text: str) -> None:
    person = b.add_person(begin)
    made = recipe(
        title="Llama 微调", summary="中文摘要 of it", datasets=(DatasetUsed("openwebtext", 2),)
    )
    add(begin, person, made)
    add(begin, person, recipe(title="Other", model="BERT", template=recipe().template))
    assert "Llama 微调" in titles(begin, Filters(asked=asked(text)))
    assert titles(begin, Filters(asked=asked(text + " zzz"))) == []


def test_who_sees_it(begin: Begin) -> None:
    person = b.add_person(begin)
    for visibility in Visibility:
        add(begin, person, recipe(title=visibility.value), visibility)

    assert set(titles(begin, Filters())) == {"group", "site"}
    assert titles(begin, Filters(), groups=("vision",)) == ["site"]
    assert titles(begin, Filters(), groups=()) == ["site"]


def test_filters_and_orders(begin: Begin) -> None:
    person = b.add_person(begin)
    add(begin, person, recipe(title="one", tags=("small",), datasets=(DatasetUsed("pile", 1),)))

    assert titles(begin, Filters(tag="small", dataset="pile", model="gpt-2", cost=10**6, gpus=2))
    for none in (Filters(tag="x"), Filters(dataset="x"), Filters(cost=1), Filters(gpus=1)):
        assert titles(begin, none) == []
    for order in ("new", "cheap", "small", "'; drop"):
        assert titles(begin, Filters(order=order)) == ["one"]


def test_the_same_document_is_one_and_a_retracted_one_is_not_found(begin: Begin) -> None:
    person = b.add_person(begin)
    first, second = add(begin, person, recipe()), add(begin, person, recipe())
    assert first == second
    with begin() as session:
        recipes.retract(session, first, now=b.NOW)
        recipes.retract(session, first, now=b.NOW)
    assert titles(begin, Filters()) == []
    with begin() as session:
        recipes.bring_back(session, first, recipe())
        recipes.bring_back(session, first, recipe())
    assert titles(begin, Filters(asked=asked("tiny"))) == ["Tiny GPT"]


def test_pages(begin: Begin) -> None:
    person = b.add_person(begin)
    for number in range(5):
        add(begin, person, recipe(title=f"r{number}"))
    viewer = b.viewer("reader", person_id=999)
    with begin() as session:
        first, more = recipes.search(session, viewer, Filters(), limit=3)
        rest, end = recipes.search(session, viewer, Filters(), skip=3, limit=3)
        choices = recipes.choices(session, viewer)
    assert (len(first), more, len(rest), end) == (3, True, 2, False)
    assert choices["tag"] == ["gpt"]
    assert choices["gpu_type"] == ["a100"]


def test_reruns_are_counted_once_and_only_those_that_changed_nothing(begin: Begin) -> None:
    person = b.add_person(begin)
    made = add(begin, person, recipe())
    ids = [b.add_submission(begin, person, form_key=f"k{n}") for n in range(4)]
    with begin() as session:
        for number, one in enumerate(ids):
            recipe_reruns.note(session, one, made, kind="rerun", changed=number == 3, now=b.NOW)
            recipe_reruns.note(session, one, made, kind="clone", changed=False, now=b.NOW)
        later = b.NOW + timedelta(hours=1)
        for one, within in zip(ids, (1, 5, 1, 1), strict=True):
            done = [
                recipe_reruns.finish(session, one, state="done", within=within, match={}, now=later)
                for _ in range(2)
            ]
            assert done == [True, False]
        tally = recipe_reruns.tallies(session, [made])[made]
    assert (tally.compared, tally.within_1, tally.within_5) == (3, 2, 3)
    assert tally.last_at is not None
