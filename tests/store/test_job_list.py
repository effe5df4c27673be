import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from gateway.core.states import JobState
from gateway.store import models as t
from gateway.store.queries import search
from gateway.store.queries.filters import JobFilters, Scope, Sort, states_of
from gateway.store.queries.jobs import JobPage, JobRow, class_counts, job_page
from gateway.store.uow import Begin
from gateway.testing import builders as b

NOW = b.NOW


def page(begin: Begin, scope: Scope, filters: JobFilters | None = None, **values: Any) -> JobPage:
    with begin() as session:
        return job_page(session, scope, filters or JobFilters(), now=NOW, **values)


def ids(found: JobPage) -> list[int]:
    return [row.id for row in found.rows]


def add_many(begin: Begin, number: int, seed: int = 1) -> list[dict[str, Any]]:
    """Jobs of all sorts, many with the very same submit time; answers their facts by id."""
    chance = random.Random(seed)
    rows: list[dict[str, Any]] = []
    for n in range(1, number + 1):
        state = chance.choice([*["COMPLETED"] * 5, "PENDING", "RUNNING", "FAILED", "NODE_FAIL"])
        rows.append(
            {
                "id": n,
                "cluster": b.CLUSTER,
                "slurm_id": 100 + n,
                "array_job_id": 100 + n - n % 3 if n % 7 == 0 else None,
                "user": chance.choice(["member", "member", "colleague", "stranger"]),
                "name": chance.choice(["train-a", "train-b", "eval", "retrain", "тест"]),
                "group": chance.choice(["nlp", "nlp", "vision", "biolab"]),
                "partition": chance.choice(["a100", "a100", "a100", "debug"]),
                "qos": chance.choice(["normal", None, "spot"]),
                "template": chance.choice(["ddp", None, "command"]),
                "state": state,
                "active": not JobState(state).is_ended,
                "submit_time": NOW - timedelta(minutes=chance.randrange(number)),
                "last_submit_time": NOW,
                "seen_at": NOW,
                "nodes": 1,
                "cpus": 1,
                "gpus": chance.randrange(5),
                "restarts": 0,
                "working_directory": "/",
            }
        )
    with begin() as session:
        session.add_all(t.Job(**row) for row in rows)
    return rows


def expected(
    rows: list[dict[str, Any]],
    scope: Scope,
    filters: JobFilters,
    keep: Callable[[dict[str, Any]], bool],
) -> list[int]:
    states = states_of(filters.states)
    found = [
        row
        for row in rows
        if (scope.user is None or row["user"] == scope.user or row["group"] in scope.groups)
        and (not states or row["state"] in states)
        and keep(row)
    ]
    found.sort(key=lambda row: (row["submit_time"], row["id"]), reverse=True)
    return [row["id"] for row in found]


SCOPES = [
    Scope.mine("member"),
    Scope.of_groups(("nlp", "biolab"), "member"),
    Scope.of_groups((), "colleague"),
    Scope.all(),
]
CASES: list[tuple[JobFilters, Callable[[dict[str, Any]], bool]]] = [
    (JobFilters(), lambda row: True),
    (JobFilters(states=("active",)), lambda row: True),
    (JobFilters(states=("ended", "RUNNING")), lambda row: True),
    (JobFilters(states=("failed",), partition="debug"), lambda row: row["partition"] == "debug"),
    (JobFilters(group="nlp"), lambda row: row["group"] == "nlp"),
    (JobFilters(group="vision"), lambda row: row["group"] == "vision"),
    (JobFilters(user="stranger"), lambda row: row["user"] == "stranger"),
    (JobFilters(name="train"), lambda row: row["name"].startswith("train")),
    (JobFilters(name="*train"), lambda row: "train" in row["name"]),
    (JobFilters(name="тес"), lambda row: row["name"] == "тест"),
    (JobFilters(name="%"), lambda row: False),
    (JobFilters(name="'; drop table job; --"), lambda row: False),
    (JobFilters(slurm_id=150), lambda row: 150 in {row["slurm_id"], row["array_job_id"]}),
    (JobFilters(qos="spot", template="ddp"),
     lambda row: row["qos"] == "spot" and row["template"] == "ddp"),
    (JobFilters(since=NOW - timedelta(minutes=200), until=NOW - timedelta(minutes=100)),
     lambda row: NOW - timedelta(minutes=200) <= row["submit_time"] < NOW - timedelta(minutes=100)),
    (JobFilters(states=("pending",), user="member", group="nlp", partition="a100", name="train"),
     lambda row: row["user"] == "member" and row["group"] == "nlp"
     and row["partition"] == "a100" and row["name"].startswith("train")),
]  # fmt: skip


@pytest.mark.parametrize("looked_at", [5_000, 40])
@pytest.mark.parametrize("descending", [True, False])
def test_pages_one_after_another_are_the_whole_answer_in_order(
    begin: Begin, read: Begin, monkeypatch: pytest.MonkeyPatch, looked_at: int, descending: bool
) -> None:
    """Also when the window is so small that it ends many times on the way."""
    monkeypatch.setattr(search, "LOOKED_AT", looked_at)
    rows = add_many(begin, 400)
    for scope in SCOPES:
        for filters, keep in CASES:
            wanted = expected(rows, scope, filters, keep)
            found, cursor = walk(read, scope, filters, descending=descending)
            assert found == (wanted if descending else wanted[::-1]), (scope, filters)
            assert cursor is None


def walk(
    read: Begin, scope: Scope, filters: JobFilters, *, descending: bool
) -> tuple[list[int], str | None]:
    found: list[int] = []
    cursor = None
    for _ in range(500):
        one = page(read, scope, filters, descending=descending, cursor=cursor, limit=30)
        found += ids(one)
        cursor = one.next
        if cursor is None:
            break
    return found, cursor


@pytest.mark.parametrize("looked_at", [5_000, 40])
def test_previous_leads_back_the_same_way(
    begin: Begin, read: Begin, monkeypatch: pytest.MonkeyPatch, looked_at: int
) -> None:
    monkeypatch.setattr(search, "LOOKED_AT", looked_at)
    add_many(begin, 400)
    filters = JobFilters(partition="a100", qos="normal")
    scope = Scope.of_groups(("nlp",), "member")
    forth, cursor, last = [], None, None
    for _ in range(100):
        one = page(read, scope, filters, cursor=cursor, limit=7)
        forth += ids(one)
        if one.next is None:
            last = one
            break
        cursor = one.next
    assert last is not None

    back = ids(last)
    previous = last.previous
    for _ in range(200):
        if previous is None:
            break
        one = page(read, scope, filters, cursor=previous, limit=7)
        back = [id_ for id_ in ids(one) if id_ not in back] + back
        previous = one.previous

    assert back == forth


def test_counts_are_exact_up_to_a_thousand_and_say_when_there_are_more(
    begin: Begin, read: Begin
) -> None:
    rows = add_many(begin, 1_200)
    mine = expected(rows, Scope.mine("member"), JobFilters(), lambda row: True)

    one = page(read, Scope.mine("member"))
    everybody = page(read, Scope.all())

    assert (one.counted.number, one.counted.more) == (len(mine), False)
    assert (everybody.counted.number, everybody.counted.more) == (1_000, True)


def test_own_jobs_in_an_own_group_are_counted_once(begin: Begin, read: Begin) -> None:
    b.add_job(begin)
    b.add_job(begin, group="elsewhere")

    one = page(read, Scope.of_groups(("nlp",), "member"))

    assert len(one.rows) == 2
    assert one.counted.number == 2


def test_a_page_that_did_not_look_at_all_says_how_far_it_looked(
    begin: Begin, read: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "LOOKED_AT", 20)
    for n in range(60):
        b.add_job(begin, submit_time=NOW - timedelta(minutes=n), qos="a" if n < 59 else "b")
    filters = JobFilters(name="*absent")

    one = page(read, Scope.all(), filters)

    assert one.rows == ()
    assert one.looked_to == NOW - timedelta(minutes=20)
    assert one.counted.more
    assert one.next is not None


def test_a_rare_value_is_found_at_once_wherever_it_lies(
    begin: Begin, read: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "LOOKED_AT", 20)
    for n in range(60):
        b.add_job(begin, submit_time=NOW - timedelta(minutes=n), qos="a" if n < 59 else "b")

    one = page(read, Scope.of_groups(("nlp",), "member"), JobFilters(qos="b", partition="a100"))

    assert len(one.rows) == 1
    assert (one.looked_to, one.next, one.counted.more) == (None, None, False)


def test_sorting_by_other_things_than_submit_time(begin: Begin, read: Begin) -> None:
    def job(**values: Any) -> int:
        return b.add_job(begin, **values)

    start = NOW - timedelta(minutes=30)
    long_wait = job(submit_time=NOW - timedelta(hours=9), state="RUNNING", start_time=start, gpus=1)
    waits = job(submit_time=NOW - timedelta(hours=2), gpus=8)
    short = job(
        state="COMPLETED", start_time=NOW - timedelta(minutes=59), gpus=4,
        end_time=NOW - timedelta(minutes=58),
    )  # fmt: skip
    mine = Scope.mine("member")

    assert ids(page(read, mine, sort=Sort.GPUS)) == [waits, short, long_wait]
    assert ids(page(read, mine, sort=Sort.WAIT)) == [long_wait, waits, short]
    assert ids(page(read, mine, sort=Sort.RUN_TIME)) == [long_wait, short, waits]
    assert ids(page(read, mine, sort=Sort.START)) == [long_wait, short, waits]
    assert ids(page(read, mine, sort=Sort.START, descending=False)) == [short, long_wait, waits]


def test_a_sorted_list_has_pages_too(begin: Begin, read: Begin) -> None:
    rows = add_many(begin, 50)
    found: list[int] = []
    cursor = None
    while True:
        one = page(read, Scope.all(), sort=Sort.GPUS, cursor=cursor, limit=20)
        found += ids(one)
        cursor = one.next
        if cursor is None:
            break

    gpus = {row["id"]: row["gpus"] for row in rows}
    assert sorted(found) == sorted(gpus)
    assert [gpus[id_] for id_ in found] == sorted(gpus.values(), reverse=True)
    assert one.sorted_among is None


@pytest.mark.parametrize(
    "cursor",
    ["", "x", "a", "a1", "a1.", "a-1.1", "a99999999999999999999.1", "a9223372036854775807.1",
     "b1.1", "o-1", "o99999999999999999999", "a١.1", "a1.1;drop"],
)  # fmt: skip
@pytest.mark.parametrize("sort", [Sort.SUBMIT, Sort.GPUS])
def test_a_broken_cursor_is_the_first_page_or_an_empty_one(
    begin: Begin, read: Begin, cursor: str, sort: Sort
) -> None:
    b.add_job(begin)

    assert len(page(read, Scope.all(), cursor=cursor, sort=sort).rows) <= 1


def test_chips_count_by_class(begin: Begin, read: Begin) -> None:
    for state in ("PENDING", "PENDING", "RUNNING", "FAILED", "COMPLETED"):
        b.add_job(begin, state=state)
    b.add_job(begin, state="FAILED", submit_time=NOW - timedelta(days=9))

    with read() as session:
        counts = class_counts(session, Scope.mine("member"), now=NOW)

    assert (counts.pending.number, counts.running.number) == (2, 1)
    assert (counts.failed.number, counts.ended.number) == (1, 3)


def test_a_row_has_every_field(begin: Begin, read: Begin) -> None:
    job_id = b.add_job(begin, name="тест", reason="Priority")

    [row] = page(read, Scope.all()).rows

    assert isinstance(row, JobRow)
    assert (row.id, row.name, row.reason, row.group) == (job_id, "тест", "Priority", "nlp")


def test_a_scope_of_groups_needs_somebody() -> None:
    with pytest.raises(ValueError, match="somebody"):
        Scope(None, ("nlp",))


def test_a_leader_of_very_many_groups_is_answered(begin: Begin, read: Begin) -> None:
    job_id = b.add_job(begin, user="colleague", group="g150")
    for number in (140, 600):
        scope = Scope.of_groups((*tuple(f"g{n}" for n in range(number)), "g150"), "member")
        assert ids(page(read, scope, JobFilters(states=("active",)))) == [job_id]
