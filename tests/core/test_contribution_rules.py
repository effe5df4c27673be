"""What is left of what was brought, and the shares it gives: exact, and never less for more."""

from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core import contribution as c
from gateway.core.credits import MILLION
from gateway.core.qos import GroupPolicy
from gateway.core.qos_checks import MOST_SHARES

TODAY = date(2026, 11, 30)
MONEY = c.Kind(key="money", name="Money", unit="CNY", weight=1000, half_life_days=100)
NODE = c.Kind(
    key="node",
    name="Donated node",
    unit="node",
    weight=2 * MILLION,
    half_life_days=30,
    counted=c.Counted.PER_DAY,
)
KINDS = (MONEY, NODE)


def entry(amount: int, days_ago: int, kind: str = "money", **more: object) -> c.Entry:
    day = TODAY - timedelta(days=days_ago)
    made = c.Entry(id=1, group="nlp", kind=kind, amount=amount, day=day)
    return replace(made, **more)  # type: ignore[arg-type]


amounts = st.integers(0, 10**15)
ages = st.integers(0, 5000)
half_lives = st.none() | st.integers(1, 4000)
formulas = st.builds(
    c.Formula,
    shape=st.sampled_from(c.Shape),
    base=st.integers(0, 1000),
    scale=st.integers(0, 100 * MILLION),
    cap=st.none() | st.integers(0, 10**12),
    least=st.integers(1, 100),
    most=st.integers(100, MOST_SHARES),
)


@pytest.mark.parametrize(
    ("age", "left"), [(0, 1_000_000), (100, 500_000), (200, 250_000), (-1, 0), (50, 707_106)]
)
def test_what_was_paid_halves_with_each_half_life(age: int, left: int) -> None:
    """1000 CNY at 0.001 a point are one point."""
    assert c.part(MONEY, entry(1000 * MILLION, age), TODAY).left == left


def test_without_a_half_life_nothing_fades() -> None:
    kept = replace(MONEY, half_life_days=None)
    assert c.part(kept, entry(1000 * MILLION, 5000), TODAY).left == MILLION


def test_what_ended_and_counted_once_counts_no_longer() -> None:
    ended = entry(1000 * MILLION, 100, ended_on=TODAY)
    assert c.part(MONEY, ended, TODAY).left == 0
    assert c.part(MONEY, ended, TODAY - timedelta(days=1)).left > 0


@pytest.mark.parametrize(
    ("ended_days_ago", "days"), [(None, 11), (0, 10), (10, 0), (4, 6), (30, 0)]
)
def test_a_node_counts_on_each_day_that_it_was_there(ended_days_ago: int | None, days: int) -> None:
    steady = replace(NODE, half_life_days=None)
    ended = None if ended_days_ago is None else TODAY - timedelta(days=ended_days_ago)
    found = c.part(steady, entry(MILLION, 10, "node", ended_on=ended), TODAY)
    assert found.left == found.full == days * 2 * MILLION


@given(ages, st.integers(1, 4000), st.none() | st.integers(-50, 5000))
def test_days_add_up_to_what_each_of_them_gives(
    age: int, half_life: int, ended: int | None
) -> None:
    """The closed form against the sum, to a millionth of a point."""
    kind = replace(NODE, half_life_days=half_life)
    age = age % 60
    ended_on = None if ended is None else TODAY - timedelta(days=ended)
    found = c.part(kind, entry(MILLION, age, "node", ended_on=ended_on), TODAY).left
    youngest = 0 if ended is None else max(0, ended + 1)
    exact = sum(2 * MILLION * 2 ** (-k / half_life) for k in range(youngest, age + 1))
    assert abs(found - exact) <= 1


@given(amounts, amounts, ages, half_lives, st.sampled_from(c.Counted), formulas)
def test_more_never_gives_less(
    one: int, other: int, age: int, half: int | None, counted: c.Counted, formula: c.Formula
) -> None:
    kind = replace(MONEY, half_life_days=half, counted=counted)
    less, more = sorted((one, other))
    parts = [c.part(kind, entry(amount, age), TODAY).left for amount in (less, more)]
    assert parts[0] <= parts[1]
    assert c.shares(formula, parts[0]) <= c.shares(formula, parts[1])


@given(amounts, ages, ages, half_lives)
def test_what_was_brought_later_never_gives_less(
    amount: int, one: int, other: int, half: int | None
) -> None:
    kind = replace(MONEY, half_life_days=half)
    later, earlier = sorted((one, other))
    lefts = [c.part(kind, entry(amount, age), TODAY).left for age in (earlier, later)]
    assert lefts[0] <= lefts[1] <= amount * kind.weight // MILLION


@given(formulas, st.integers(0, 10**18))
def test_shares_are_whole_and_within_their_bounds(formula: c.Formula, points: int) -> None:
    found = c.shares(formula, points)
    assert formula.least <= found <= formula.most


@given(st.integers(0, 10**18), st.integers(0, 10**9))
def test_the_square_root_is_the_exact_one_rounded_down(points: int, scale: int) -> None:
    formula = c.Formula(shape=c.Shape.SQUARE_ROOT, base=0, scale=scale, least=0, most=10**30)
    found = c.shares(formula, points)
    square = Fraction(scale, MILLION) ** 2 * Fraction(points, MILLION)
    assert found**2 <= square < (found + 1) ** 2


def test_what_lies_above_the_cap_gives_nothing_more() -> None:
    formula = c.Formula(shape=c.Shape.CAPPED, base=10, scale=2 * MILLION, cap=5 * MILLION)
    assert [c.shares(formula, n * MILLION) for n in (0, 3, 5, 500)] == [10, 16, 20, 20]


@given(st.lists(st.tuples(amounts, ages), max_size=8))
def test_a_score_is_the_sum_of_its_parts_in_any_order(lines: list[tuple[int, int]]) -> None:
    rules = c.Rules(kinds=KINDS)
    entries = [entry(amount, age) for amount, age in lines]
    forth, back = c.scores(rules, entries, TODAY), c.scores(rules, entries[::-1], TODAY)
    if lines:
        assert forth["nlp"].points == back["nlp"].points
        assert forth["nlp"].points == sum(part.left for part in forth["nlp"].parts)


def test_a_debt_in_the_ledger_never_makes_a_score_negative() -> None:
    rules = c.Rules(kinds=KINDS)
    entries = [entry(5 * MILLION, 9), replace(entry(0, 0), amount=-(10**9))]
    assert c.scores(rules, entries, TODAY)["nlp"].points == 0


def test_groups_get_shares_but_for_those_left_alone_and_those_that_share_with_the_one_above() -> (
    None
):
    rules = c.Rules(
        kinds=KINDS, formula=c.Formula(base=10, scale=10 * MILLION), left_alone=("root1",)
    )
    groups = [
        GroupPolicy(name="nlp", shares=1),
        GroupPolicy(name="cv", shares=10),
        GroupPolicy(name="root1", shares=7),
        GroupPolicy(name="below", shares=None),
    ]
    found = c.results(rules, [entry(2000 * MILLION, 0)], groups, TODAY, usable={})
    assert [one.after.shares for one in found] == [30, 10, 7, None]
    assert [one.changes for one in found] == [True, False, False, False]
    assert [one.untouched for one in found][2:] == [c.Untouched.LEFT_ALONE, c.Untouched.PARENT]


def test_a_tier_gives_and_takes_its_own_qos_only() -> None:
    rules = c.Rules(kinds=KINDS, tiers=(c.Tier(MILLION, "gold"), c.Tier(MILLION // 2, "silver")))
    rich, poor = entry(1000 * MILLION, 0), replace(entry(600 * MILLION, 0), group="cv")
    groups = [
        GroupPolicy(name="nlp", qos=("normal",), shares=4),
        GroupPolicy(name="cv", qos=("gold", "normal"), default_qos="gold", shares=4),
        GroupPolicy(name="ops", qos=("debug", "silver"), default_qos="debug", shares=4),
    ]
    found = [one.after for one in c.results(rules, [rich, poor], groups, TODAY, usable={})]
    assert [one.qos for one in found] == [
        ("gold", "normal", "silver"),
        ("normal", "silver"),
        ("debug",),
    ]
    assert [one.default_qos for one in found] == [None, None, "debug"]
    assert {one.shares for one in found} == {4}


def test_a_group_without_a_list_of_its_own_keeps_what_it_has_from_above() -> None:
    rules = c.Rules(kinds=KINDS, tiers=(c.Tier(MILLION, "gold"),))
    groups = [GroupPolicy(name="nlp"), GroupPolicy(name="cv"), GroupPolicy(name="ops")]
    usable = {"nlp": ("normal", "spot"), "cv": ("normal",), "ops": ("gold", "normal")}
    found = c.results(rules, [entry(1000 * MILLION, 0)], groups, TODAY, usable=usable)
    assert [one.after.qos for one in found] == [("gold", "normal", "spot"), (), ("normal",)]
    assert [one.changes for one in found] == [True, False, True]
