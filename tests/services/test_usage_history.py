"""Use of cards over the history, also against a slow and simple reckoning second by second."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from zoneinfo import ZoneInfo

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.past_runs import COLUMNS
from gateway.core.usage_figures import By, CreditSeen
from gateway.core.wait_figures import Dimension, Question
from gateway.history.stats import card_days, columns, limits, part_files
from gateway.history.stats import used as stats

HOUR = 3600
NOW = datetime(2026, 4, 20, tzinfo=UTC)
ALL = CreditSeen(all_groups=True)
BERLIN = ZoneInfo("Europe/Berlin")


@dataclass(frozen=True)
class Row:
    """A row of `waits`; times are moments."""

    start: datetime | None
    end: datetime | None
    gpus: int | None = 8
    group: str = "nlp"
    user: str | None = "ann"
    gpu_type: str | None = "a100"
    state: str = "COMPLETED"
    elapsed: int | None = None
    limit: int | None = 600
    charge: int | None = None
    source: str | None = None
    submit: datetime | None = None
    causes: tuple = ()
    cause_now: str | None = None


def history(*rows):
    """A connection with the view `waits` that has these rows."""
    connection = duckdb.connect(config={"autoinstall_known_extensions": False})
    columns = ", ".join(f'"{name}" {kind.value}' for name, kind in COLUMNS.items())
    connection.execute(f"CREATE TABLE waits ({columns})")
    for row in rows:
        facts = {
            "cluster": "cluster", "user": row.user, "group": row.group, "partition": "p",
            "gpu_type": row.gpu_type, "state": row.state, "gpus": row.gpus, "cpus": 4,
            "submit_time": naive(row.submit or row.start), "start_time": naive(row.start),
            "end_time": naive(row.end), "limit_minutes": row.limit, "charge": row.charge,
            "source": row.source, "cause_now": row.cause_now, "seen_at": naive(row.submit),
            **{f"cause_{name}": seconds for name, seconds in row.causes},
        }  # fmt: skip
        if row.end and row.start:
            length = int((row.end - row.start).total_seconds())
            facts["elapsed_seconds"] = length if row.elapsed is None else row.elapsed
        named = ", ".join(f'"{name}"' for name in facts)
        marks = ", ".join("?" for _ in facts)
        connection.execute(f"INSERT INTO waits ({named}) VALUES ({marks})", list(facts.values()))
    return connection


def naive(at):
    return at.astimezone(UTC).replace(tzinfo=None) if at else None


def at(*parts):
    return datetime(*parts, tzinfo=UTC)


def asked(since=None, until=None, **more):
    return Question(now=NOW, since=since, until=until, **more)


def parts(connection):
    """The same rows as statistics read them; what is mapped stays when the file is gone."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "runs.parquet"
        connection.execute(f"COPY waits TO '{file}' (FORMAT parquet)")
        return part_files.Parts().of([file], Path(folder) / "columns")


def used(connection, question, *by, credit=ALL):
    return {row.keys: row for row in stats.use(parts(connection), question, by, credit=credit)}


def hours(connection, question, *by):
    return {keys: row.gpu_seconds / HOUR for keys, row in used(connection, question, *by).items()}


OVER = Row(at(2026, 1, 31, 22), at(2026, 2, 1, 4), charge=48_000_000)
JANUARY = asked(at(2026, 1, 1), at(2026, 2, 1))
FEBRUARY = asked(at(2026, 2, 1), at(2026, 3, 1))


def test_a_run_over_the_edge_of_a_month_counts_in_each_with_its_part():
    found = history(OVER)
    assert hours(found, JANUARY) == {(): 16}
    assert hours(found, FEBRUARY) == {(): 32}
    assert hours(found, asked(), By.MONTH) == {("2026-01",): 16, ("2026-02",): 32}
    assert hours(found, asked()) == {(): 48}


def test_its_charge_counts_once_in_the_month_in_which_it_ended():
    found = history(OVER)
    assert used(found, JANUARY)[()].charge is None
    assert used(found, FEBRUARY)[()].charge == 48_000_000
    by_month = used(found, asked(), By.MONTH)
    assert by_month["2026-01",].charge is None
    assert by_month["2026-02",].charge == 48_000_000


def test_the_month_is_one_of_the_zone():
    found = history(OVER)
    shanghai = asked(zone="Asia/Shanghai")  # where it all was in February
    assert hours(found, shanghai, By.MONTH) == {("2026-02",): 48}


def test_requeued_runs_are_counted_one_by_one():
    first = Row(at(2026, 1, 5, 9), at(2026, 1, 5, 10), gpus=4, state="PREEMPTED")
    second = Row(at(2026, 1, 5, 12), at(2026, 1, 5, 15), gpus=4)
    assert hours(history(first, second), JANUARY) == {(): 16}
    assert hours(history(first, second), JANUARY, By.STATE) == {
        ("COMPLETED",): 12,
        ("PREEMPTED",): 4,
    }


def test_what_never_started_used_nothing():
    gave_up = Row(None, at(2026, 1, 5), submit=at(2026, 1, 4), state="CANCELLED")
    waits = Row(None, None, submit=at(2026, 1, 4), state="PENDING")
    assert used(history(gave_up, waits), JANUARY) == {}


def test_a_run_that_goes_on_counts_until_now_and_no_longer_than_its_limit():
    runs = Row(NOW - timedelta(hours=3), None, state="RUNNING")
    lost = Row(at(2026, 1, 5), None, state="RUNNING", limit=60)
    assert hours(history(runs), asked()) == {(): 24}
    assert hours(history(lost), asked()) == {(): 8}
    assert used(history(runs), asked())[()].ended == 0


def test_suspended_time_is_not_run_time():
    suspended = Row(at(2026, 1, 5, 10), at(2026, 1, 5, 14), gpus=4, elapsed=3 * HOUR)
    assert hours(history(suspended), JANUARY) == {(): 12}


def test_cards_of_which_nobody_told_are_counted_as_such():
    row = used(history(Row(at(2026, 1, 5), at(2026, 1, 6), gpus=None)), JANUARY)[()]
    assert (row.runs, row.untold, row.gpu_seconds) == (1, 1, 0)


def test_money_of_other_groups_is_not_told():
    ours = replace(OVER, charge=1)
    theirs = replace(OVER, charge=10, group="vision")
    found = history(ours, theirs)
    own = CreditSeen(groups=("nlp",))
    assert used(found, FEBRUARY, credit=own)[()].charge == 1
    by_group = used(found, FEBRUARY, By.GROUP, credit=own)
    assert by_group["vision",].charge is None
    assert used(found, FEBRUARY, credit=CreditSeen())[()].charge is None


def test_others_are_people_beside_the_asker_and_the_groups_led():
    rows = [
        OVER,
        replace(OVER, user="bob"),
        replace(OVER, user="bob"),
        replace(OVER, user=None),
        replace(OVER, user="eve", group="led"),
    ]
    question = replace(FEBRUARY, own_user="ann", own_groups=("led",))
    row = used(history(*rows), question)[()]
    assert (row.people, row.others, row.runs) == (3, 2, 5)


def test_filters_combine():
    rows = [OVER, replace(OVER, gpu_type=None), replace(OVER, gpus=1), replace(OVER, user="bob")]
    for only, number in (
        ({Dimension.GPU_TYPE: ("",)}, 1),
        ({Dimension.GPU_TYPE: ("", "a100")}, 4),
        ({Dimension.GPU_CLASS: ("1",)}, 1),
        ({Dimension.USER: ("ann",), Dimension.GPU_CLASS: ("5-8",)}, 2),
        ({Dimension.LIMIT_CLASS: ("≤12h",)}, 4),
        ({Dimension.LIMIT_CLASS: ("≤4h", ">3d")}, 0),
        ({Dimension.GROUP: ("x' OR 1=1 --",)}, 0),
    ):
        found = used(history(*rows), replace(FEBRUARY, only=only))
        assert sum(row.runs for row in found.values()) == number, only


def test_a_question_about_no_time_is_answered_with_nothing():
    assert used(history(), asked(), By.GROUP, By.MONTH) == {}
    assert card_days.by_day(parts(history()), asked()) == []


MARCH = at(2026, 3, 27)
moments = st.integers(0, 6 * 24 * 60).map(lambda n: MARCH + timedelta(minutes=n))
rows = st.builds(
    lambda start, minutes, gpus, group, gpu_type: Row(
        start, start + timedelta(minutes=minutes), gpus, group, gpu_type=gpu_type
    ),
    moments, st.integers(0, 9 * 24 * 60), st.integers(0, 9), st.sampled_from(["nlp", "vision"]),
    st.sampled_from(["a100", "h100", None]),
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(rows, max_size=8), moments, st.integers(1, 6 * 24 * 60))
def test_days_and_months_over_the_clock_change_add_up_to_the_second(given_rows, since, minutes):
    until = since + timedelta(minutes=minutes)
    question = asked(since, until, zone="Europe/Berlin")
    found = history(*given_rows)
    by_month: dict = {}
    by_day: dict = {}
    for row in given_rows:
        moment = max(row.start, since)
        while moment < min(row.end, until):
            here = moment.astimezone(BERLIN)
            key = (row.group, f"{here:%Y-%m}")
            by_month[key] = by_month.get(key, 0) + row.gpus * 60
            day = (here.date(), row.gpu_type or "unknown")
            by_day[day] = by_day.get(day, 0) + row.gpus * 60
            moment += timedelta(minutes=1)
    rows_ = used(found, question, By.GROUP, By.MONTH)
    assert {k: r.gpu_seconds for k, r in rows_.items() if r.gpu_seconds} == {
        key: seconds for key, seconds in by_month.items() if seconds
    }
    days = card_days.by_day(parts(found), question)
    assert {(one.day, one.gpu_type): one.gpu_seconds for one in days} == {
        key: seconds for key, seconds in by_day.items() if seconds
    }
    assert sum(r.gpu_seconds for r in used(found, question).values()) == sum(by_month.values())


@settings(max_examples=40, deadline=None)
@given(st.lists(rows, min_size=1, max_size=6), moments, st.integers(1, 100))
def test_parts_of_neighbouring_periods_add_up_also_where_a_run_was_suspended(given_rows, cut, part):
    short = [
        replace(row, elapsed=int((row.end - row.start).total_seconds()) * part // 100)
        for row in given_rows
    ]
    found = history(*short)
    whole = sum(row.elapsed * row.gpus for row in short)
    before = sum(r.gpu_seconds for r in used(found, asked(None, cut)).values())
    after = sum(r.gpu_seconds for r in used(found, asked(cut, None)).values())
    assert before + after == whole


def test_limits_are_compared_with_what_was_used():
    start = at(2026, 1, 5)
    runs = [
        Row(start, start + timedelta(minutes=n), gpus=2, limit=2880) for n in range(10, 210, 10)
    ]
    hit = Row(start, start + timedelta(hours=5), gpus=1, limit=300, state="TIMEOUT")
    endless = Row(start, start + timedelta(hours=5), gpus=1, limit=None)
    running = Row(NOW - timedelta(hours=1), None, state="RUNNING")
    (row,) = limits.limits(parts(history(*runs, hit, endless, running)), asked(), by_group=True)
    assert (row.key, row.runs, row.unlimited, row.completed) == ("nlp", 22, 1, 20)
    assert row.reserved_gpu_seconds == 20 * 2 * 48 * HOUR + 5 * HOUR
    assert row.used_gpu_seconds == 2 * 60 * sum(range(10, 210, 10)) + 5 * HOUR
    assert (row.p90_s, row.median_limit_s, row.timeout_s) == (180 * 60, 48 * HOUR, 5 * HOUR)


def test_bins_tell_how_much_of_a_limit_was_used():
    start = at(2026, 1, 5)
    ends = (0, 59, 60, 599, 600, 601)
    found = parts(history(*(Row(start, start + timedelta(minutes=n), gpus=1) for n in ends)))
    bins = {row.low: row.runs for row in limits.limit_bins(found, asked()) if row.runs}
    assert bins == {0: 2, 10: 1, 90: 1, 100: 2}
    assert len(limits.limit_bins(found, asked())) == 11


def test_waits_for_limits_are_summed_by_group():
    submit = at(2026, 1, 5)
    started = Row(
        submit + timedelta(hours=3), at(2026, 1, 6), submit=submit,
        causes=(("deferral", HOUR), ("group_limit", HOUR), ("no_gpus", HOUR)),
    )  # fmt: skip
    waits = Row(
        None, None, submit=NOW - timedelta(hours=2), state="PENDING", cause_now="qos_limit",
        causes=(("user_limit", 0),), group="vision", user="bob",
    )  # fmt: skip
    free = replace(started, group="bio", causes=(("no_gpus", 3 * HOUR),))
    found = limits.limit_waits(parts(history(started, waits, free)), asked())
    assert [(row.group, row.limit_s, row.wait_s) for row in found] == [
        ("vision", 2 * HOUR, 2 * HOUR),
        ("nlp", HOUR, 2 * HOUR),
    ]
    assert (found[0].qos_limit_s, found[1].group_limit_s, found[1].limited) == (2 * HOUR, HOUR, 1)


def test_charges_are_added_up_to_the_last_millionth():
    found = history(replace(OVER, charge=2**53), replace(OVER, charge=1), replace(OVER, charge=0))
    for question in (asked(), FEBRUARY):
        assert used(found, question)[()].charge == 2**53 + 1
    assert used(history(replace(OVER, charge=0)), FEBRUARY)[()].charge == 0


def test_what_an_imported_set_knows_of_a_run_without_an_end_is_its_length():
    row = Row(at(2026, 1, 31, 22), None, state="RUNNING", source="old", limit=None)
    found = history(row)
    found.execute("UPDATE waits SET elapsed_seconds = 4 * 3600")
    assert hours(found, asked(), By.MONTH) == {("2026-01",): 16, ("2026-02",): 16}
    assert used(found, asked())[()].ended == 0


BERLIN_SPRING = asked(at(2026, 3, 28), at(2026, 4, 2), zone="Europe/Berlin")


@pytest.mark.parametrize("by", [(By.GROUP, By.MONTH), (By.USER, By.STATE), (By.GPU_TYPE,)])
@pytest.mark.parametrize("question", [asked(zone="Europe/Berlin"), BERLIN_SPRING])
def test_many_parts_and_many_keys_give_the_same(monkeypatch, question, by):
    start = at(2026, 3, 29)
    rows = [
        Row(start + timedelta(hours=7 * n), start + timedelta(hours=31 * n), n % 5, f"g{n % 4}",
            None if n % 6 == 0 else f"u{n}", charge=n if n % 3 else None,
            state="FAILED" if n % 2 else "COMPLETED")
        for n in range(20)
    ]  # fmt: skip
    found = history(*rows, Row(start, None, state="RUNNING"))
    whole = stats.use_and_total(parts(found), question, by, credit=ALL)
    monkeypatch.setattr(columns, "PART", 3)
    monkeypatch.setattr(stats, "_TABLE", 0)
    assert len(parts(found)) == 7
    assert stats.use_and_total(parts(found), question, by, credit=ALL) == whole


@pytest.mark.parametrize("by", list(By))
def test_each_way_to_tell_use_apart_adds_up(by):
    found = history(OVER, replace(OVER, user=None, group="vision"))
    assert sum(hours(found, FEBRUARY, by).values()) == 64


@pytest.mark.parametrize("by", [(), (By.GROUP,), (By.GROUP, By.USER), (By.MONTH,)])
def test_the_total_is_that_of_all_rows(by):
    found = history(OVER, replace(OVER, user=None, group="vision"), replace(OVER, gpus=None))
    given = parts(found)
    rows, total = stats.use_and_total(given, FEBRUARY, by, credit=ALL)
    assert total == stats.use(given, FEBRUARY, (), credit=ALL)[0]
    assert rows == stats.use(given, FEBRUARY, by, credit=ALL)
    assert stats.use_and_total(parts(history()), FEBRUARY, by, credit=ALL)[1].runs == 0
