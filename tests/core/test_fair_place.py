"""Who stands before whom among groups."""

import pytest

from gateway.core.fair_place import Line, Pace, place

A = Line("a", 0.2, 0.31, 0.65)
B = Line("b", 0.5, 0.4, 1.25)
C = Line("c", 0.3, 0.0, None)
D = Line("d", 0.2, 0.31, 0.65)


def test_whoever_used_least_of_its_part_comes_first_and_equals_share_a_place() -> None:
    found = place("a", [A, B, C, D])
    assert found is not None
    assert [(at, line.group) for at, line in found.order] == [
        (1, "c"),
        (2, "b"),
        (3, "a"),
        (3, "d"),
    ]
    assert (found.place, found.of) == (3, 4)


def test_of_a_group_that_slurm_did_not_tell_nothing_is_said() -> None:
    assert place("x", [A, B]) is None


@pytest.mark.parametrize(
    ("entitled", "used", "pace"),
    [
        (0.2, 0.31, Pace.MORE),
        (0.5, 0.4, Pace.LESS),
        (0.2, 0.2004, Pace.EVEN),
        (0.2, 0.0, Pace.NOTHING),
    ],
)
def test_used_against_entitled_in_words(entitled: float, used: float, pace: Pace) -> None:
    found = place("a", [Line("a", entitled, used, 1.0)])
    assert found is not None
    assert found.pace is pace
