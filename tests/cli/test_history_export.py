"""`sluice history export`, and what info says, with and without a database."""

import json

import duckdb
import pytest
from click.testing import CliRunner

from gateway.cli import main
from gateway.core.past_runs import COLUMNS
from gateway.testing import builders as b
from tests.cli.test_money_commands import begin

__all__ = ["begin"]

CSV = "id,submit,eligible,start,end,state,gpus\n" + "".join(
    f"{n},2026-01-0{n}T00:00:00Z,2026-01-0{n}T00:00:00Z,2026-01-0{n}T01:00:00Z,"
    f"2026-01-0{n}T02:00:00Z,COMPLETED,4\n"
    for n in range(1, 4)
)


@pytest.fixture
def old(tmp_path):
    file = tmp_path / "old.csv"
    file.write_text(CSV)
    return str(file)


def run(*words):
    return CliRunner().invoke(main, ["history", *words])


def told(*words):
    done = run(*words, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.output)


def test_all_rows_with_all_columns_as_others_read_them(begin, old, tmp_path):
    b.add_run(begin, b.add_job(begin, state="COMPLETED"))
    b.add_job(begin)
    assert run("import", old, "--format", "csv").exit_code == 0
    file = tmp_path / "out.parquet"
    found = told("export", str(file))
    assert found == {"file": str(file), "rows": 5, "bytes": file.stat().st_size}
    with duckdb.connect() as connection:
        names = connection.read_parquet(str(file)).columns
        counts = connection.execute(
            "SELECT source, count(start_time), count(*) FROM read_parquet($1) GROUP BY 1"
            " ORDER BY 1 NULLS FIRST",
            [str(file)],
        ).fetchall()
    assert names == list(COLUMNS)
    assert counts == [(None, 1, 2), ("old", 3, 3)]


def test_a_period_is_of_submit_times_in_the_zone_of_the_site(home, old, tmp_path):
    """Also on a home that never had a database or a worker."""
    assert run("import", old, "--format", "csv").exit_code == 0
    words = ("export", str(tmp_path / "out.parquet"))
    assert told(*words, "--from", "2026-01-02", "--to", "2026-01-03T00:00Z")["rows"] == 1
    assert "3 rows in" in run(*words).output
    assert not list(home.glob("*.db"))


@pytest.mark.usefixtures("home")
def test_where_nothing_can_be_written_it_says_so(tmp_path):
    done = run("export", str(tmp_path / "no" / "out.parquet"))
    assert done.exit_code == 1
    assert "No such file or directory" in done.output
    assert "Traceback" not in done.output


def test_info_tells_who_waits_who_never_started_and_what_was_imported(begin, old):
    b.add_run(begin, b.add_job(begin, state="COMPLETED"))
    b.add_job(begin)
    b.add_job(begin, state="CANCELLED", end_time=b.NOW)
    assert run("import", old, "--format", "csv").exit_code == 0
    found = told("rebuild")
    assert (found["runs"], found["never_started"], found["waiting"]) == (1, 1, 1)
    (given,) = found["sets"]
    assert (given["name"], given["format"], given["rows"], given["held"]) == ("old", "csv", 3, 0)
    said = run("info").output
    assert "1 runs, 1 jobs that never started, 1 that wait." in said
    assert "Imported set old (csv): 3 rows, 0 held" in said


@pytest.mark.usefixtures("home")
def test_info_right_after_an_import_tells_the_sets(old):
    assert run("info").output == "Of the portal's own jobs there is none.\n"
    assert run("import", old, "--format", "csv").exit_code == 0
    said = run("info").output
    assert "no columnar history" not in said
    assert "Imported set old (csv): 3 rows, 0 held" in said


def test_info_tells_of_jobs_whose_columns_are_still_to_be_made(begin, old):
    b.add_job(begin)
    assert run("import", old, "--format", "csv").exit_code == 0
    said = run("info").output
    assert "no columnar history of the portal's own jobs yet, 1 blocks" in said
    assert "Imported set old (csv): 3 rows, 0 held" in said
