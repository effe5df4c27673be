import string
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.recipe_match import differences, match
from gateway.core.recipes import fingerprint, seeds_of, tags_of
from gateway.core.search_words import asked, words
from gateway.testing.recipe_samples import recipe
from gateway.wire import codec


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("GPT-2 Small", "gpt 2 small"),
        ("训练模型", "训练 练模 模型 型"),
        ("gpt训练", "gpt 训练 练"),
        ("Café", "cafe"),
        ("ＡＢＣ", "abc"),
        ("a a", "a"),
    ],
)
def test_words(text: str, kept: str) -> None:
    assert words([text]) == kept


@given(st.text())
def test_words_of_a_search_hold_letters_and_digits_alone(text: str) -> None:
    assert all(word.isalnum() for word in asked(text))


@given(st.text(alphabet=string.ascii_letters + "大模型训练 ", min_size=1))
def test_each_text_is_found_by_itself(text: str) -> None:
    kept = words([text]).split()
    assert all(any(one.startswith(word) for one in kept) for word in asked(text))


@pytest.mark.parametrize(("loss", "within"), [(2.0, 1), (2.019, 1), (2.09, 5), (3.0, 100)])
def test_a_rerun_is_as_near_as_its_worst_figure(loss: float, within: int) -> None:
    then = recipe().receipt
    now = replace(then, metrics={"loss": loss})
    assert match(then, now).within == within


def test_speed_is_compared_on_the_same_cards_alone() -> None:
    then = replace(recipe().receipt, metrics={})
    slow = replace(then, step_seconds=1.0)
    assert match(then, slow).within == 100
    assert match(then, replace(slow, gpu_type="h100")).within is None


def test_seeds_are_found_in_fields_and_arguments() -> None:
    found = seeds_of({"seed": "3", "arguments": "--data-seed=9 --lr 1 --seed 7"})
    assert found == {"seed": "3", "data-seed": "9"}


def test_tags() -> None:
    assert tags_of("#GPT, small，大模型 gpt") == ("gpt", "small", "大模型")
    with pytest.raises(ValueError, match="tags"):
        tags_of("<b>")


def test_a_changed_value_changes_the_fingerprint_and_is_told() -> None:
    one, other = recipe(), recipe(values={"script": "train.py", "arguments": "--seed 8"})
    assert fingerprint(codec.dump(one)) != fingerprint(codec.dump(other))
    assert [d.name for d in differences(one, other)] == ["arguments"]
