"""The replayed queue against one that is written to be read, not to be quick."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.core.replay import Asked, waits, waits_for_run_minutes

LIMIT = 8
job = st.tuples(
    st.integers(0, 2),  # key
    st.integers(0, 60),  # wanted
    st.integers(0, 30),  # seconds
    st.integers(1, LIMIT),  # amount
    st.integers(0, 20),  # time limit beyond the seconds
)
jobs = st.lists(job, max_size=40).map(sorted)


def columns(rows):
    keys, wanted, seconds, amounts, more = zip(*rows, strict=True) if rows else ((),) * 5
    limits = [s + m for s, m in zip(seconds, more, strict=True)]
    return Asked(keys, wanted, seconds, amounts, limits)


def slow(asked, fits):
    """Second by second, each job in turn: the first second from which on it fits."""
    found, started = [], {}
    for key, wanted, seconds, amount, allowed in zip(
        asked.keys, asked.wanted, asked.seconds, asked.amounts, asked.limits, strict=True
    ):
        of_key = started.setdefault(key, [])
        at = max([wanted, *(start for start, *_ in of_key)])
        while not fits([j for j in of_key if j[0] + j[1] > at], at, amount, allowed):
            at += 1
        of_key.append((at, seconds, amount, allowed))
        found.append(at - wanted)
    return found


@given(jobs)
def test_waits_are_those_of_the_slow_way(rows):
    asked = columns(rows)

    def fits(running, _at, amount, _allowed):
        return sum(held for _, _, held, _ in running) + amount <= LIMIT

    assert waits(asked, LIMIT) == slow(asked, fits)


@given(jobs, st.integers(LIMIT * 50, LIMIT * 80))
def test_waits_for_run_minutes_are_those_of_the_slow_way(rows, limit):
    asked = columns(rows)

    def fits(running, at, amount, allowed):
        left = sum(held * (start + own - at) for start, _, held, own in running)
        return left + amount * allowed <= limit

    assert waits_for_run_minutes(asked, limit) == slow(asked, fits)


@given(jobs, st.integers(0, 5))
def test_more_room_never_makes_anybody_wait_longer(rows, more):
    asked = columns(rows)
    pairs = zip(waits(asked, LIMIT + more), waits(asked, LIMIT), strict=True)
    assert all(with_more <= without for with_more, without in pairs)


@given(jobs)
def test_keys_do_not_see_each_other(rows):
    alone = [
        wait for key in range(3) for wait in waits(columns([r for r in rows if r[0] == key]), LIMIT)
    ]
    assert waits(columns(rows), LIMIT) == alone


@given(jobs)
def test_with_room_for_all_nobody_waits(rows):
    asked = columns(rows)
    assert set(waits(asked, LIMIT * 40)) <= {0}
