"""`sluice waits` as a person types it, on a bare $SLUICE_HOME."""

import json

import pytest
from click.testing import CliRunner

from gateway.cli import main
from gateway.core.wait_causes import Cause
from gateway.web.wait_cause_texts import CAUSE_WORDS

HEAD = (
    "JobIDRaw|JobID|JobName|User|Account|Partition|State|Submit|Eligible|Start|End|Elapsed"
    "|AllocTRES"
)
ROWS = (
    # Depends on another job: deferred five hours, waits seven minutes.
    "1|1|a|ann|nlp|a100|COMPLETED|2026-01-05T08:00:00|2026-01-05T13:00:00|2026-01-05T13:07:00"
    "|2026-01-05T14:07:00|01:00:00|gres/gpu=8",
    "2|2|b|bob|nlp|v100|FAILED|2026-01-06T08:00:00|2026-01-06T08:00:00|2026-01-06T08:30:00"
    "|2026-01-06T08:30:10|00:00:10|gres/gpu=1",
    # Gave up after 730 s.
    "3|3|c|bob|nlp|a100|CANCELLED by 60112|2026-01-07T10:30:00|2026-01-07T10:30:00|None"
    "|2026-01-07T10:42:10|00:00:00|",
)


@pytest.fixture
def waits(home, tmp_path):
    def sluice(*words, code=0):
        done = CliRunner().invoke(main, words)
        assert done.exit_code == code, done.output
        return done.output

    dump = tmp_path / "dump.psv"
    dump.write_text("\n".join((HEAD, *ROWS, "")))
    sluice("db", "upgrade")
    sluice("history", "import", str(dump), "--format", "sacct", "--timezone", "UTC")
    return lambda *words, code=0: sluice("waits", "--timezone", "UTC", *words, code=code)


def test_wait_deferral_and_who_gave_up_are_apart(waits):
    found = json.loads(waits("--json"))
    assert (found["jobs"], found["started"], found["never_started"], found["waiting"]) == (
        3,
        2,
        1,
        0,
    )
    assert found["wait"]["sum_s"] == 7 * 60 + 30 * 60
    assert found["deferral"]["max_s"] == 5 * 3600
    assert found["gave_up"]["median_s"] == 730
    assert found["definition"].startswith("wait = start - eligible")
    # The one who left is known to have waited longer than 730 s: half have started at 30 minutes.
    assert found["wait"]["median_s"] == (420 + 1800) / 2
    assert found["censored"]["median_s"] == 1800
    assert found["submitted"] == ["2026-01-05T08:00:00+00:00", "2026-01-07T10:30:00+00:00"]


def test_the_other_definition(waits):
    found = json.loads(waits("--json", "--wait", "submit"))
    assert found["wait"]["max_s"] == 5 * 3600 + 7 * 60
    assert found["definition"].startswith("wait = start - submit")


def test_filters_combine_and_a_period_takes_rows_by_submit(waits):
    assert json.loads(waits("--json", "--partition", "a100"))["jobs"] == 2
    assert json.loads(waits("--json", "--partition", "a100", "--user", "bob"))["jobs"] == 1
    assert json.loads(waits("--json", "--from", "2026-01-06", "--to", "2026-01-07"))["jobs"] == 1
    assert json.loads(waits("--json", "--min-gpus", "2"))["gpu_jobs"] == 1
    assert json.loads(waits("--json", "--partition", "none"))["jobs"] == 0


def test_rows_by_a_dimension(waits):
    rows = json.loads(waits("--json", "--by", "partition"))["rows"]
    assert [(row["key"], row["partition"], row["jobs"]) for row in rows] == [
        ("a100", "a100", 2),
        ("v100", "v100", 1),
    ]
    assert len(json.loads(waits("--json", "--by", "partition", "--limit", "1"))["rows"]) == 1


@pytest.mark.parametrize("by", ["partition", "gpu_class", "hour_of_week", "submit_month"])
def test_the_table_names_its_definition_and_fits(waits, by):
    text = waits("--by", by, "--histogram", "log")
    assert text.startswith("wait = start - eligible")
    assert "all" in text
    assert all(len(line) <= 100 for line in text.splitlines()), text


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--from", "yesterday"), 2),
        (("--by", "colour"), 2),
        (("--timezone", "Mars/Olympus"), 1),
        (("--min-gpus", "-1"), 2),
    ],
)
def test_what_makes_no_sense_is_said(waits, words, code):
    assert "Error" in waits(*words, code=code)


def test_without_any_history_there_are_no_jobs(home):
    done = CliRunner().invoke(main, ["waits", "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["jobs"] == 0


def test_where_the_wait_went(waits):
    found = json.loads(waits("--causes", "--by", "partition", "--json"))
    whole = found["causes"]
    assert (whole["jobs"], whole["conclusion"]) == (3, "too_few")
    # Nobody looked, so what was no deferral is unknown.
    assert (whole["seconds"]["deferral"], whole["seconds"]["unknown"]) == (18_000, 2_950)
    assert set(whole["seconds"]) == set(Cause)
    assert [(row["key"], row["jobs"], row["wait_s"]) for row in found["rows"]] == [
        ("a100", 2, 18_000 + 420 + 730),
        ("v100", 1, 1800),
    ]
    assert sum(row["wait_s"] for row in found["rows"]) == whole["wait_s"]
    only = json.loads(waits("--causes", "--partition", "v100", "--json"))
    assert (only["causes"]["wait_s"], "rows" in only) == (1800, False)


def test_where_the_wait_went_in_the_words_of_the_page(waits):
    told = waits("--causes", "--by", "partition", "--limit", "1")
    assert "a100: 2 jobs, 2.7 h from submit to start on average." in told
    assert "Too few jobs to say: fewer than 10." in told
    assert f"{CAUSE_WORDS[Cause.DEFERRAL].english} (5.0 h)" in told
    assert "v100" not in told
    assert waits("--causes", "--partition", "none") == "There are no jobs.\n"
    assert "no --histogram" in waits("--causes", "--histogram", "log", code=2)
