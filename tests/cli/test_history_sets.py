"""`sluice history import --format csv|swf`, `sets` and `forget`, in a home that has nothing yet."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from gateway.cli import main

CSV = "id,submit,start,end,state\n1,1700000000,1700000060,1700003660,COMPLETED\n"


@pytest.fixture
def run(home):
    def _run(*words, **values):
        return CliRunner().invoke(main, ["history", *words], **values)

    return _run


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "north.csv"
    path.write_text(CSV)
    return path


def test_a_file_becomes_a_set_that_charges_nothing(run, file):
    done = run("import", str(file), "--format", "csv")
    assert done.exit_code == 0, done.output
    assert "1 rows in the file: 1 stored in the set north, 0 known before" in done.output
    assert "they charge nothing" in done.output
    assert "north: 1 rows of csv" in run("sets").output
    again = run("import", str(file), "--format", "csv", "--json")
    assert json.loads(again.output) == {
        "set": "north",
        "records": 1,
        "stored": 0,
        "known": 1,
        "repeated": 0,
        "steps": 0,
        "held": 0,
        "newly_held": 0,
        "reasons": {},
        "cut": None,
        "ties": True,
        "columns": {name: name for name in ("id", "submit", "start", "end", "state")},
    }


def test_held_rows_are_kept_even_where_there_was_no_database(run, file, home):
    file.write_text(f"{CSV}2,soon,,,FAILED\n")
    for newly in (1, 0):
        done = run("import", str(file), "--format", "csv", "--json")
        assert done.exit_code == 0, done.output
        told = json.loads(done.output)
        assert (told["held"], told["newly_held"], told["reasons"]) == (1, newly, {"submit": 1})


def test_a_cut_file_fails_and_says_how_much_came(run, file):
    file.write_text(f"{CSV}2,17000")
    done = run("import", str(file), "--format", "csv")
    assert done.exit_code == 1
    assert "2 rows in the file: 1 stored" in done.output
    assert "The end is missing" in done.output


def test_a_dry_run_shows_what_is_taken_for_what_and_stores_nothing(run, file, tmp_path):
    file.write_text(f"{CSV}2,soon,,,FAILED\n")
    done = run("import", str(file), "--format", "csv", "--dry-run")
    assert done.exit_code == 0, done.output
    assert 'submit = "submit"' in done.output
    assert "submit_time=2023-11-14T22:13:20Z" in done.output
    assert "# held: submit: no time: soon" in done.output
    assert "There are none" in run("sets").output
    mapping = tmp_path / "mapping.toml"
    mapping.write_text(done.output)
    words = ("import", str(file), "--format", "csv", "--mapping", str(mapping), "--json")
    assert json.loads(run(*words).output)["stored"] == 1


def test_from_standard_input_with_a_name(run):
    refused = run("import", "-", "--format", "csv", input=CSV)
    assert refused.exit_code == 1
    assert "--name" in refused.output
    done = run("import", "-", "--format", "csv", "--name", "piped", "--json", input=CSV)
    assert json.loads(done.output)["stored"] == 1


def test_a_set_is_forgotten_after_asking(run, file):
    run("import", str(file), "--format", "csv")
    assert run("forget", "north", input="n\n").exit_code == 1
    assert "north" in run("sets").output
    assert "north is forgotten" in run("forget", "north", input="y\n").output
    assert json.loads(run("sets", "--json").output) == []
    assert "There is no set" in run("forget", "north", "--yes").output


def test_what_cannot_be_meant_is_refused_in_a_sentence(run, file, tmp_path):
    assert "no time zone" in run("import", str(file), "--format", "csv", "--timezone", "x").output
    assert "are for csv" in run("import", str(file), "--format", "sacct", "--name", "x").output
    mapping = tmp_path / "mapping.toml"
    for text, said in {
        "[columns": "no TOML",
        "[columns]\nwhen = 'x'": "knows no when",
        "[units]\nlimit = 'weeks'": "limit is one of",
        "[states]\n'7' = 'GOOD'": "no state of Slurm",
        "[factors]\ngpus = -1": "above 0",
        "[rules]\nstarted = 'maybe'": "started is one of",
        "timezone = 'Mars'": "no time zone",
        "colour = 'red'": "knows no 'colour'",
        "[tres]\ngpu = 'x'": "names numbers",
        "[times]\nzero = 'x'": "whole number",
        "columns = 5": "is a table",
    }.items():
        mapping.write_text(text)
        done = run("import", str(file), "--format", "csv", "--mapping", str(mapping))
        assert (done.exit_code, said in done.output) == (1, True), (text, done.output)
