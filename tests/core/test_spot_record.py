"""The preemption record: exposure by hour of the day, rates, the curve, and what is hidden."""

import random
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from gateway.core import spot_record as r
from gateway.core.spot_record import Cell, Edge, Length, Sums

SINCE = datetime(2026, 1, 1, tzinfo=UTC)
UNTIL = SINCE + timedelta(days=90)


def sums_of(runs: list[tuple[datetime, int, int, bool]], shift: int = 0) -> Sums:
    """As the database does: start, seconds, cards, preempted."""
    found = Sums()
    for n, (start, seconds, cards, preempted) in enumerate(runs):
        began = int(start.timestamp()) + shift
        ended = began + seconds
        for edges, at in ((found.began, began), (found.ended, ended)):
            bucket, offset = divmod(at, 3600)
            edges.append(Edge(bucket, 1, offset, cards, cards * offset, int(preempted)))
        hours = range(began // 3600, (ended - 1) // 3600 + 1)
        found.people[f"p{n}"] = frozenset(hour % 24 for hour in hours)
        minutes = -(-seconds // 60)
        before = found.lengths.get(minutes, (0, 0))
        found.lengths[minutes] = before[0] + preempted, before[1] + (not preempted)
    return found


def made(runs: list[tuple[datetime, int, int, bool]], zone: str = "UTC") -> r.Record:
    place = ZoneInfo(zone)
    sums = sums_of(runs, r.shift_of(place, UNTIL))
    return r.record("spot", "a100", sums, since=SINCE, until=UNTIL, zone=place)


def at(hour: int, minute: int = 0) -> datetime:
    return SINCE.replace(hour=hour, minute=minute)


def seconds(record: r.Record) -> dict[int, int]:
    return {hour: cell.seconds for hour, cell in enumerate(record.hours) if cell and cell.seconds}


def test_a_run_is_spread_over_the_hours_it_ran_in() -> None:
    found = made([(at(1, 30), 2 * 3600, 4, True)])
    assert seconds(found) == {1: 1800, 2: 3600, 3: 1800}
    assert [cell.card_seconds for cell in found.hours[1:4] if cell] == [7200, 14400, 7200]
    assert [cell.events for cell in found.hours if cell and cell.events] == [1]
    assert found.hours[3] is not None
    assert found.hours[3].events == 1  # the hour in which it was preempted
    assert [hour for hour, cell in enumerate(found.hours) if cell and cell.people] == [1, 2, 3]
    assert found.whole == Cell(7200, 28800, 1, 1)


def test_a_run_within_one_hour_and_one_of_a_second() -> None:
    found = made([(at(5, 10), 600, 1, False), (at(5, 59), 1, 1, False)])
    assert seconds(found) == {5: 601}
    assert found.runs == 2


def test_the_hours_are_those_of_the_site() -> None:
    assert seconds(made([(at(20), 3600, 1, False)], "Asia/Shanghai")) == {4: 3600}
    # Half an hour beside the full hours of UTC.
    assert seconds(made([(at(20, 30), 3600, 1, False)], "Asia/Kolkata")) == {2: 3600}
    assert seconds(made([(at(20), 3600, 1, False)], "Asia/Kathmandu")) == {1: 900, 2: 2700}


def test_what_ran_is_what_is_counted_whatever_the_runs() -> None:
    chance = random.Random(3)
    runs = [
        (
            SINCE + timedelta(seconds=chance.randrange(80 * 86400)),
            chance.randrange(1, 200_000),
            chance.choice([1, 8]),
            chance.random() < 0.3,
        )
        for _ in range(300)
    ]
    found = made(runs, "Europe/Berlin")
    assert found.whole.seconds == sum(one[1] for one in runs)
    assert found.whole.card_seconds == sum(one[1] * one[2] for one in runs)
    assert found.whole.events == sum(one[3] for one in runs)


def test_types_together_are_the_sum_and_people_count_once() -> None:
    one, other = sums_of([(at(1), 600, 1, True)]), sums_of([(at(1), 600, 2, False)])
    whole = r.record("spot", "", r.together([one, other]), since=SINCE, until=UNTIL, zone=UTC)
    assert (whole.whole.seconds, whole.whole.events, whole.whole.people) == (1200, 1, 1)
    assert whole.lengths == (Length(10, 1, 1),)


# Poisson's exact 95 % limits for a count, from tables.
@pytest.mark.parametrize(
    ("events", "low", "high"),
    [(0, 0.0, 3.689), (1, 0.0253, 5.572), (5, 1.623, 11.668), (20, 12.217, 30.888),
     (100, 81.36, 121.63)],
)  # fmt: skip
def test_the_interval_is_near_poissons(events: int, low: float, high: float) -> None:
    found = r.rate(events, 3600)
    assert found.low == pytest.approx(low, rel=0.03, abs=0.02)
    assert found.high == pytest.approx(high, rel=0.02)
    assert found.per_hour == events


def test_few_preemptions_say_nothing_of_how_often() -> None:
    assert r.rate(4, 36_000).between_hours is None
    assert r.rate(5, 36_000).between_hours == 2.0


def test_the_curve_is_kaplan_and_meiers() -> None:
    """The textbook's sample: 6-MP in leukaemia (Freireich 1963), in weeks."""
    events = {6: 3, 7: 1, 10: 1, 13: 1, 16: 1, 22: 1, 23: 1}
    censored = {6: 1, 9: 1, 10: 1, 11: 1, 17: 1, 19: 1, 20: 1, 25: 1, 32: 2, 34: 1, 35: 1}
    lengths = [
        Length(week, events.get(week, 0), censored.get(week, 0)) for week in {*events, *censored}
    ]
    steps = r.survival(lengths, least=1)
    shares = {one.minutes: one.share for one in steps}
    assert shares == pytest.approx(
        {0: 1, 6: 0.857, 7: 0.807, 10: 0.753, 13: 0.690, 16: 0.627, 22: 0.538, 23: 0.448},
        abs=0.001,
    )
    assert r.minutes_to(steps, 0.5) == 23
    assert r.minutes_to(steps, 0.9) is None


def test_the_curve_ends_where_few_are_left() -> None:
    steps = r.survival([Length(10, 2, 4), Length(20, 1, 3), Length(30, 1, 0)])
    assert [one.minutes for one in steps] == [0, 10, 20]


def test_nothing_is_shown_of_few_people() -> None:
    cells = tuple(Cell(3600, 3600, 1, 6 if hour < 20 else 2) for hour in range(24))
    record = r.Record(
        "spot", "a100", SINCE, UNTIL, 24, Cell(24 * 3600, 24 * 3600, 24, 6), cells, ()
    )
    shown = r.hide(record, 5)
    assert shown is not None
    assert [hour for hour, cell in enumerate(shown.hours) if cell is None] == [20, 21, 22, 23]
    assert r.hide(record, 7) is None


def test_one_hidden_hour_takes_another_with_it() -> None:
    """Else it could be taken from the sum."""
    people = [9] * 24
    people[3], people[7] = 2, 6
    cells = tuple(Cell(3600, 3600, 1, count) for count in people)
    record = r.Record(
        "spot", "a100", SINCE, UNTIL, 24, Cell(24 * 3600, 24 * 3600, 24, 9), cells, ()
    )
    shown = r.hide(record, 5)
    assert shown is not None
    assert [hour for hour, cell in enumerate(shown.hours) if cell is None] == [3, 7]
    assert shown.at_hour(3) is None


@pytest.mark.parametrize("runs", range(8, 61, 4))
@pytest.mark.parametrize(("share", "of"), [(0.25, 4), (0.5, 2), (0.75, 4)])
def test_the_minute_of_a_share_is_exact_however_many_runs_there_were(
    runs: int, share: float, of: int
) -> None:
    steps = r.survival([r.Length(minute, 1, 0) for minute in range(1, runs + 1)], least=1)
    assert r.minutes_to(steps, share) == runs * round(share * of) // of
