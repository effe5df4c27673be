"""Points by factor, and what makes the difference between two jobs."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from gateway.core.standing import Factor, deciding, differences, factors, points
from gateway.wire.policy import PriorityFactors, PriorityWeights

OWN = PriorityFactors(
    1, "nlp-1", "nlp", "a100", "normal", 10_490, 0, 500, 0, 0, 0, 0, 10_000, 10, "gres/gpu=3,cpu=1"
)
WEIGHTS = PriorityWeights(1000, 0, 10_000, 0, 0, 100_000, "")


def test_factors_that_give_or_could_give_points():
    assert factors(OWN, WEIGHTS) == (
        Factor("of_qos", 10_000, 100_000),
        Factor("fair_share", 0, 10_000),
        Factor("age", 500, 1000),
        Factor("tres", 4, 0),
        Factor("nice", -10, None),
    )


def test_what_decides_is_the_largest_difference_on_that_side():
    other = replace(OWN, of_qos=100_000, age=0)
    found = differences(OWN, other)
    assert [(one.key, one.ahead) for one in found] == [("of_qos", -90_000), ("age", 500)]
    assert deciding(found, for_own=False).key == "of_qos"
    assert deciding(found, for_own=True).key == "age"
    assert deciding(differences(OWN, OWN), for_own=True) is None


def test_a_text_that_is_none_has_no_points():
    assert points(replace(OWN, tres="?"), "tres") == 0


@given(st.integers(-100, 100_000), st.integers(-100, 100_000), st.integers(0, 1000))
def test_the_differences_are_the_difference(qos, other_qos, age):
    one, other = replace(OWN, of_qos=qos, age=age), replace(OWN, of_qos=other_qos, age=7)
    total = sum(d.ahead for d in differences(one, other))
    assert total == qos + age - other_qos - 7
