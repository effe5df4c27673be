from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.goodput import Mark, RunSigns, Use, of_run, of_runs, steps_lost, together

TIMES = st.floats(min_value=-1e4, max_value=2e10, allow_nan=False)
NEAR = st.floats(min_value=0, max_value=5000)


def run(**changes: object) -> RunSigns:
    """1000 s on one card, so that card-seconds are seconds."""
    facts: dict[str, object] = {"start": 0.0, "end": 1000.0, "card_seconds": 1000}
    return RunSigns(**(facts | changes))  # type: ignore[arg-type]


def used(signs: RunSigns, best: int | None = None) -> dict[str, int]:
    return {use.value: n for use, n in of_run(signs, best=best).parts.items() if n}


def test_steps_that_are_new_are_useful_and_what_comes_before_them_is_the_start() -> None:
    marks = [Mark(100, 0), Mark(500, 40), Mark(900, 80)]
    assert used(run(marks=marks, over=1000.0)) == {"starting": 100, "useful": 900}


def test_steps_made_again_after_a_restart_are_repeated() -> None:
    marks = [Mark(100, 50), Mark(900, 130)]
    assert used(run(marks=marks, over=900.0), best=90) == {
        "starting": 100,
        "repeated": 400,
        "useful": 400,
        "idle": 100,
    }


def test_a_stall_begins_with_the_last_step_and_not_with_the_guards_word() -> None:
    marks = [Mark(100, 0), Mark(300, 20), Mark(800, 21), Mark(1000, 41)]
    assert used(run(marks=marks, stalls=[700.0])) == {
        "starting": 100,
        "useful": 400,
        "stalled": 500,
    }


def test_a_stall_that_nothing_ends_lasts_to_the_end() -> None:
    marks = [Mark(100, 0), Mark(300, 20)]
    assert used(run(marks=marks, stalls=[700.0], over=950.0))["stalled"] == 700


def test_a_stall_before_any_step_begins_with_the_script() -> None:
    assert used(run(began=10.0, stalls=[700.0])) == {"starting": 10, "stalled": 990}


def test_idle_cards_count_only_where_no_step_is_told() -> None:
    marks = [Mark(0, 0), Mark(60, 1), Mark(120, 2), Mark(900, 3)]
    idle = [(0.0, 60.0), (300.0, 360.0), (360.0, 420.0), (960.0, 1020.0)]
    assert used(run(marks=marks, idle=idle)) == {"useful": 780, "idle": 160, "not_measured": 60}


def test_a_script_that_reports_nothing_is_not_measured_but_for_its_start_and_idle_cards() -> None:
    assert used(run()) == {"not_measured": 1000}
    assert used(run(began=30.0, idle=[(600.0, 660.0)])) == {
        "starting": 30,
        "idle": 60,
        "not_measured": 910,
    }


def test_what_comes_after_the_last_word_is_not_guessed() -> None:
    assert used(run(marks=[Mark(0, 0), Mark(400, 10)])) == {"useful": 400, "not_measured": 600}


def test_a_script_that_begins_again_within_its_allocation_is_starting_and_then_repeats() -> None:
    marks = [Mark(0, 0), Mark(400, 40), Mark(500, 20), Mark(900, 60), Mark(1000, 70)]
    assert used(run(marks=marks)) == {"useful": 400 + 200 + 100, "starting": 100, "repeated": 200}


def test_reports_of_the_same_step_are_one_mark() -> None:
    marks = [Mark(0, 0), *(Mark(at, 1) for at in range(10, 60)), Mark(1000, 2)]
    assert used(run(marks=marks)) == {"useful": 1000}


def test_each_run_knows_how_far_those_before_it_came() -> None:
    first = run(marks=[Mark(0, 0), Mark(1000, 100)])
    second = run(start=2000.0, end=3000.0, marks=[Mark(2000, 80), Mark(3000, 180)])
    parts = of_runs([first, second])
    assert [one.parts[Use.REPEATED] for one in parts] == [0, 200]
    assert together(parts).total == 2000
    assert together(parts).best == 180


def test_a_charge_that_differs_from_the_clock_is_shared_out_all_the_same() -> None:
    marks = [Mark(0, 0), Mark(500, 10)]
    assert used(run(marks=marks, card_seconds=7)) == {"useful": 4, "not_measured": 3}
    assert used(run(end=0.0, card_seconds=5)) == {"not_measured": 5}


def test_steps_lost() -> None:
    assert steps_lost(616, 600) == 16
    assert steps_lost(616, 700) == 0
    assert steps_lost(None, 5) is None
    assert steps_lost(5, None) is None


@settings(max_examples=400)
@given(
    start=TIMES,
    length=st.floats(min_value=0, max_value=1e7),
    card_seconds=st.integers(min_value=0, max_value=10**12),
    began=st.none() | TIMES | NEAR,
    marks=st.lists(st.tuples(TIMES | NEAR, st.integers(min_value=0, max_value=2**53))),
    stalls=st.lists(TIMES | NEAR),
    over=st.none() | TIMES | NEAR,
    idle=st.lists(st.tuples(TIMES | NEAR, TIMES | NEAR)),
    best=st.none() | st.integers(min_value=0, max_value=2**53),
    near=st.booleans(),
)
def test_the_parts_always_sum_to_the_charge_and_none_is_negative(
    start: float,
    length: float,
    card_seconds: int,
    began: float | None,
    marks: list[tuple[float, int]],
    stalls: list[float],
    over: float | None,
    idle: list[tuple[float, float]],
    best: int | None,
    near: bool,
) -> None:
    start = 0.0 if near else start
    signs = RunSigns(
        start=start,
        end=start + length,
        card_seconds=card_seconds,
        began=began,
        marks=[Mark(*one) for one in marks],
        stalls=stalls,
        over=over,
        idle=idle,
    )
    found = of_run(signs, best=best)
    assert set(found.parts) == set(Use)
    assert found.total == card_seconds
    assert min(found.parts.values()) >= 0
