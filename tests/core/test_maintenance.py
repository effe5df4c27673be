"""The reservation before a job, and the longest limit that still fits."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.caps import Shape
from gateway.core.maintenance import clash, fitting_minutes, reservations_ahead
from gateway.testing import builders as b
from gateway.testing.builders import NOW
from gateway.wire import policy as p

NODES = tuple(b.node(f"a100-{n}") for n in range(1, 5))
ALL = tuple(node.name for node in NODES)


def reservation(name="upkeep", begins=160, lasts=240, nodes=ALL, **more):
    start = NOW + timedelta(minutes=begins)
    facts = {"partition": None, "flags": ("MAINT",), "users": (), "accounts": ()}
    return p.Reservation(name, start, start + timedelta(minutes=lasts), nodes, **(facts | more))


def found(minutes, *given_reservations, nodes=1, per=8, all_nodes=NODES, user="member"):
    return clash(
        Shape(nodes, per, None, 8, minutes),
        partition="a100",
        nodes=all_nodes,
        reservations=given_reservations,
        user=user,
        group="nlp",
        now=NOW,
    )


def test_what_ends_before_it_is_not_warned_of():
    assert found(160, reservation()) is None
    told = found(161, reservation())
    assert (told.name, told.is_maintenance, told.fits_minutes) == ("upkeep", True, 155)


def test_other_nodes_are_enough():
    assert found(600, reservation(nodes=ALL[:3])) is None
    assert found(600, reservation(nodes=ALL[:3]), nodes=2).name == "upkeep"


def test_the_nodes_that_stay_free_longest_count():
    early, late = reservation("early", 60, nodes=ALL[:2]), reservation("late", 300, nodes=ALL[2:])
    assert (found(600, early, late, nodes=2).name, found(600, early, late, nodes=3).name) == (
        "late",
        "early",
    )


def test_once_it_has_begun_nothing_fits():
    told = found(10, reservation(begins=-30))
    assert (told.fits_minutes, told.end) == (None, NOW + timedelta(minutes=210))
    assert found(10, reservation(begins=-300)) is None  # over


def test_broken_nodes_and_those_too_small_are_no_way_out():
    nodes = (*NODES, b.node("a100-5", state="DOWN"), b.node("a100-6", gpus=2))
    assert found(600, reservation(), all_nodes=nodes).name == "upkeep"


@pytest.mark.parametrize(
    ("more", "blocks"),
    [
        ({"users": ("member",)}, True),  # a job of the portal names no reservation
        ({"users": ("member",), "flags": ("MAGNETIC",)}, False),
        ({"accounts": ("nlp",), "flags": ("MAGNETIC",)}, False),
        ({"accounts": ("vision",), "flags": ("MAGNETIC",)}, True),
        ({"users": ("-member",), "flags": ("MAGNETIC",)}, True),
    ],
)
def test_only_a_magnetic_one_draws_in_whom_it_is_for(more, blocks):
    assert (found(600, reservation(**more)) is not None) is blocks


@given(st.integers(1, 2000), st.integers(1, 5000))
def test_the_limit_that_fits_is_not_warned_of(begins, minutes):
    told = found(minutes, reservation(begins=begins))
    if told is not None and told.fits_minutes is not None:
        assert told.fits_minutes < minutes
        assert found(told.fits_minutes, reservation(begins=begins)) is None


def test_round_numbers_where_they_cost_little():
    minutes = [fitting_minutes(NOW + timedelta(minutes=n), NOW) for n in (1, 20, 32, 40, 162)]
    assert minutes == [0, 18, 30, 35, 160]


def test_what_is_ahead_for_everybody():
    later = reservation("later", 20 * 24 * 60)
    bare = reservation("licences", nodes=())
    told = reservations_ahead((later, reservation(), bare), NOW, within=timedelta(days=14))
    assert [(one.name, one.fits_minutes) for one in told] == [("upkeep", 155)]
