from hypothesis import given
from hypothesis import strategies as st

from gateway.web.charts import Series, chart, thinned

FLOATS = st.floats(min_value=-1e30, max_value=1e30)


def test_a_gap_and_a_restart_begin_another_line() -> None:
    values = [(0.0, 1.0, 0), (1.0, 2.0, 0), (2.0, None, 0), (3.0, 3.0, 0), (4.0, 4.0, 1)]
    made = chart([Series("main", "Loss", values)])
    assert made is not None
    [line] = made.lines
    assert line.paths == [
        "0.00,75.00 25.00,50.00",
        "75.00,25.00 75.00,25.00",
        "100.00,0.00 100.00,0.00",
    ]
    assert (made.low, made.high, line.now) == (0.0, 4.0, 4.0)


def test_nothing_to_draw_is_no_chart() -> None:
    assert chart([]) is None
    assert chart([Series("main", "Loss", [(0.0, None, 0)])]) is None


@given(
    st.lists(st.tuples(st.floats(0, 4e9), st.none() | FLOATS, st.integers(0, 3)), max_size=50),
    st.booleans(),
)
def test_every_point_lies_in_the_picture(
    values: list[tuple[float, float | None, int]], zero: bool
) -> None:
    made = chart([Series("main", "Loss", sorted(values, key=lambda one: one[0]))], from_zero=zero)
    for line in made.lines if made else []:
        for path in line.paths:
            for place in path.split():
                assert all(-0.01 <= float(number) <= 100.01 for number in place.split(","))


@given(st.lists(st.integers(), max_size=200), st.integers(min_value=2, max_value=30))
def test_thinning_keeps_the_ends_and_the_order(rows: list[int], most: int) -> None:
    found = thinned(list(enumerate(rows)), most)
    assert len(found) == min(len(rows), most)
    assert found == sorted(found)
    if rows:
        assert found[0][0] == 0
        assert found[-1][0] == len(rows) - 1
