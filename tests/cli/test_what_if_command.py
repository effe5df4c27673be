"""`sluice qos what-if` and `sluice history info|rebuild` as somebody types them."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from click.testing import CliRunner

from gateway.cli import main
from gateway.core.credits import MILLION
from gateway.services import poll
from gateway.store import prices
from gateway.store.uow import make_begin, make_engine
from gateway.testing import builders as b
from gateway.testing.fakebroker import FakeBroker

LIMIT = '[qos.normal]\ndescription = "x"\ngrp_jobs = 1\ngrp_tres = {"mem" = 5}\n'


def run(*words):
    return CliRunner().invoke(main, words)


def told(*words):
    done = run(*words, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.fixture
def begin(home):
    assert run("db", "upgrade").exit_code == 0
    engine = make_engine(f"sqlite:///{home / 'sluice.db'}")
    begin = make_begin(engine)
    now = datetime.now(UTC)
    poll.poll_policy(begin=begin, broker=FakeBroker(), now=now)
    for group in ("nlp", "vision"):
        end = now - timedelta(hours=1)
        job = b.add_job(begin, state="COMPLETED", group=group)
        b.add_run(begin, job, start_time=end - timedelta(hours=1), end_time=end)
    with begin() as session:
        prices.add_price(
            session,
            list_name=prices.SITE,
            resource="a100",
            per_hour=10 * MILLION,
            starts=now - timedelta(days=1),
            now=now,
            person_id=None,
        )
    yield begin
    engine.dispose()


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "policy.toml"
    path.write_text(LIMIT)
    return str(path)


def test_the_history_is_told_and_made_anew(begin):
    assert "There is no columnar history" in run("history", "info").output
    assert told("history", "info")["made_at"] is None
    found = told("history", "rebuild")
    assert (found["runs"], found["blocks"], found["to_make"]) == (2, 1, 0)
    said = run("history", "info").output
    assert "2 runs, 0 jobs that never started, 0 that wait." in said
    assert "1 blocks, in 1 files of 0.0 MB, as of" in said
    b.add_run(begin, b.add_job(begin, state="COMPLETED"))
    assert "1 of them to be made again" in run("history", "info").output


@pytest.mark.usefixtures("begin")
def test_without_a_history_it_says_how_to_make_one(file):
    done = run("qos", "what-if", file)
    assert done.exit_code == 0
    assert "sluice history rebuild" in done.output


@pytest.mark.usefixtures("begin")
def test_who_would_have_waited_and_what_it_would_have_cost(file):
    told("history", "rebuild")
    words = ("qos", "what-if", file, "--price", "a100=12", "--factor", "normal=0.5")
    found = told(*words)
    assert found["runs"] == 2
    (limit,) = found["limits"]
    assert (limit["of"], limit["name"], limit["field"]) == ("qos", "normal", "grp_jobs")
    assert (limit["before"], limit["after"]) == (None, 1)
    assert (limit["later"], limit["later_seconds"]) == (1, 3600)
    assert {(one["field"], one["tres"]) for one in found["not_replayed"]} >= {("grp_tres", "mem")}
    groups = {one["group"]: one for one in found["groups"]}
    assert sum(one["later"] for one in groups.values()) == 1
    assert groups["nlp"]["cost_before"] == "20.00"
    assert groups["nlp"]["cost_after_millionths"] == 12 * MILLION
    printed = run(*words).output
    assert "qos:normal GrpJobs: 0 refused, 1 later by 1.0 h in all" in printed
    assert "GrpTRES=mem: cannot be replayed" in printed


@pytest.mark.usefixtures("begin")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--days", "0"), "0 is not in the range"),
        (("--price", "a100"), "'a100' is not NAME=NUMBER."),
        (("--factor", "spot=x"), "'x' is no number"),
        (("--price", "a100=x"), "Type an amount in figures"),
        (("--price", "a100=-1"), "cannot be negative"),
        (("--factor", "spot=-1"), "cannot be negative"),
    ],
)
def test_what_cannot_be_read_is_said(file, words, said):
    done = run("qos", "what-if", file, *words)
    assert done.exit_code != 0
    assert said in done.output
    assert "Traceback" not in done.output
