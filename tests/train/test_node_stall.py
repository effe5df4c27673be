"""When a run counts as stalled. No clock: the seconds are said."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from sluice_train.node.stall import Guard, Limits, Seen, Stall

EVERY = 10


def watched(guard: Guard, looks: Iterable[tuple[float, Seen]]) -> list[tuple[float, Stall]]:
    """The stalls that are told, and when."""
    return [(now, stall) for now, seen in looks if (stall := guard.look(now, seen))]


def for_seconds(start: int, seconds: int, seen: Seen) -> list[tuple[float, Seen]]:
    """The same is seen every ten seconds."""
    return [(float(now), seen) for now in range(start, start + seconds, EVERY)]


def stepping(start: int, seconds: int, seen: Seen) -> list[tuple[float, Seen]]:
    """A step more at each look."""
    looks = for_seconds(start, seconds, seen)
    return [(now, replace(look, step=int(now))) for now, look in looks]


@pytest.fixture
def guard() -> Guard:
    return Guard(Limits())


ALL = Seen(alive=4, expected=4)
BUSY = Seen(busiest=97.0)
IDLE = Seen(busiest=0.0)


def test_a_rank_that_is_gone_for_a_minute_is_a_stall(guard: Guard) -> None:
    looks = [*for_seconds(0, 60, ALL), *for_seconds(60, 300, replace(ALL, alive=3))]
    [(when, stall)] = watched(guard, looks)
    assert (when, stall.signs) == (130, ("ranks",))
    assert stall.text == "3 of 4 ranks are alive, for 70 s"


def test_ranks_that_were_never_all_there_are_only_slow_to_start(guard: Guard) -> None:
    assert not watched(guard, for_seconds(0, 3600, replace(ALL, alive=3)))


def test_a_rank_that_comes_back_in_time_is_no_stall(guard: Guard) -> None:
    looks = [*for_seconds(0, 20, ALL), *for_seconds(20, 60, replace(ALL, alive=3))]
    assert not watched(guard, [*looks, *for_seconds(80, 300, ALL)])


def test_without_telemetry_nothing_is_known_of_ranks(guard: Guard) -> None:
    short, silent = replace(ALL, alive=3), Seen()
    looks = [*for_seconds(0, 20, ALL), *for_seconds(20, 40, short), *for_seconds(60, 3600, silent)]
    assert not watched(guard, looks)


def test_steps_that_stop_are_a_stall_after_five_minutes(guard: Guard) -> None:
    looks = [*stepping(0, 100, Seen()), *for_seconds(100, 900, Seen(step=90))]
    [(when, stall)] = watched(guard, looks)
    assert (when, stall.signs, stall.text) == (390, ("steps",), "no step after 90 for 300 s")


def test_a_run_of_long_steps_has_ten_of_them(guard: Guard) -> None:
    slow = Seen(step_seconds=60)
    looks = [*stepping(0, 100, slow), *for_seconds(100, 900, replace(slow, step=90))]
    assert [when for when, _ in watched(guard, looks)] == [690]


def test_before_the_first_step_is_reported_there_is_no_stall_of_steps(guard: Guard) -> None:
    assert not watched(guard, for_seconds(0, 36000, Seen()))


def test_a_save_may_take_half_an_hour_and_then_counts(guard: Guard) -> None:
    saving = Seen(step=90, saving=True)
    looks = [*stepping(0, 100, Seen()), *for_seconds(100, 3600, saving)]
    assert [(when, stall.signs) for when, stall in watched(guard, looks)] == [(1900, ("steps",))]


def test_after_a_save_the_steps_have_their_time_again(guard: Guard) -> None:
    looks = [
        *stepping(0, 100, Seen()),
        *for_seconds(100, 1000, Seen(step=90, saving=True)),
        *for_seconds(1100, 290, Seen(step=90)),
        *stepping(1390, 100, Seen()),
    ]
    assert not watched(guard, looks)


def test_a_rank_that_dies_in_a_save_is_a_stall_all_the_same(guard: Guard) -> None:
    saving = replace(ALL, saving=True, alive=3)
    looks = [*for_seconds(0, 50, ALL), *for_seconds(50, 200, saving)]
    assert [stall.signs for _, stall in watched(guard, looks)] == [("ranks",)]


def test_a_silent_log_with_idle_cards_is_a_stall_where_no_steps_are_told(guard: Guard) -> None:
    looks = for_seconds(0, 3600, replace(IDLE, log_bytes=500))
    assert [(when, stall.signs) for when, stall in watched(guard, looks)] == [(1800, ("log",))]


@pytest.mark.parametrize(
    "seen",
    [
        Seen(log_bytes=500),  # cards that are not measured are not idle
        Seen(log_bytes=500, busiest=40.0),
        Seen(busiest=0.0),  # no log to look at
    ],
)
def test_a_silent_log_alone_is_none(guard: Guard, seen: Seen) -> None:
    assert not watched(guard, for_seconds(0, 7200, seen))


def test_a_log_that_grows_is_none(guard: Guard) -> None:
    looks = for_seconds(0, 7200, IDLE)
    assert not watched(guard, [(now, replace(seen, log_bytes=int(now))) for now, seen in looks])


def test_all_cards_idle_after_they_were_busy_is_a_stall(guard: Guard) -> None:
    looks = [*for_seconds(0, 100, BUSY), *for_seconds(100, 1500, IDLE)]
    assert [(when, stall.signs) for when, stall in watched(guard, looks)] == [(1000, ("cards",))]


def test_cards_that_were_never_busy_are_still_warming_up(guard: Guard) -> None:
    assert not watched(guard, for_seconds(0, 7200, IDLE))


def test_whoever_makes_steps_on_idle_cards_gets_on(guard: Guard) -> None:
    looks = [*stepping(0, 100, BUSY), *stepping(100, 3600, IDLE)]
    assert not watched(guard, looks)


def test_a_stall_is_told_once_and_again_only_after_progress(guard: Guard) -> None:
    still = Seen(step=90)
    looks = [*stepping(0, 100, Seen()), *for_seconds(100, 7200, still)]
    assert len(watched(guard, looks)) == 1
    looks = [*stepping(7300, 100, Seen()), *for_seconds(7400, 3600, Seen(step=7390))]
    assert [when for when, _ in watched(guard, looks)] == [7690]


def test_what_the_guard_itself_writes_into_the_log_is_no_progress(guard: Guard) -> None:
    silent = replace(IDLE, log_bytes=500)
    assert len(watched(guard, for_seconds(0, 1810, silent))) == 1
    guard.log_is(600)
    assert not watched(guard, for_seconds(1810, 7200, replace(silent, log_bytes=600)))


def test_the_environment_sets_one_limit_or_all() -> None:
    assert Limits.of_environment({}) == Limits(60, 300, 1800, 900, 1800)
    given = {"SLUICE_STALL_SECONDS": "2", "SLUICE_STALL_CARDS_SECONDS": "7.5"}
    assert Limits.of_environment(given) == Limits(2, 2, 2, 7.5, 2)
    with pytest.raises(ValueError, match="often"):
        Limits.of_environment({"SLUICE_STALL_SECONDS": "often"})
