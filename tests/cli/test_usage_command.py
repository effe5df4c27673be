"""`sluice usage` as an administrator types it."""

import gzip
import json

import pytest
from click.testing import CliRunner

from gateway.cli import main
from tests.cli.test_history import DUMP


@pytest.fixture
def run(home, tmp_path):
    """A history of one run over the end of January: eight cards for six hours."""
    dump = tmp_path / "dump.psv.gz"
    dump.write_bytes(gzip.compress(DUMP.encode()))

    def _run(*words):
        return CliRunner().invoke(main, ["usage", *words])

    assert CliRunner().invoke(main, ["db", "upgrade"]).exit_code == 0
    imported = CliRunner().invoke(main, ["history", "import", str(dump), "--format", "sacct"])
    assert imported.exit_code == 0, imported.output
    return _run


def facts(done):
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_a_run_over_the_edge_counts_on_each_side_with_its_part(run):
    january = facts(run("--from", "2026-01-01", "--to", "2026-02-01", "--json"))
    february = facts(run("--from", "2026-02-01", "--to", "2026-03-01", "--json"))
    assert [january["total"]["gpu_hours"], february["total"]["gpu_hours"]] == [16, 32]
    assert january["rows"][0]["group"] == "nlp"
    by_month = facts(run("--by", "month", "--by", "user", "--json"))["rows"]
    assert [(row["month"], row["user"], row["gpu_seconds"]) for row in by_month] == [
        ("2026-01", "nlp-1", 16 * 3600),
        ("2026-02", "nlp-1", 32 * 3600),
    ]


def test_people_get_a_table_with_a_sum(run):
    lines = run().output.splitlines()
    assert lines[0].split() == ["group", "GPU-hours", "runs", "people", "charged"]
    assert lines[1].split() == ["nlp", "48.00", "1", "1", "-"]
    assert lines[2].split() == ["all", "48.00", "1", "1", "-"]


def test_filters_and_nonsense(run):
    assert "No run held anything" in run("--group", "vision").output
    assert facts(run("--partition", "a100", "--json"))["total"]["runs"] == 1
    assert run("--by", "group", "--by", "group").exit_code == 2
    assert run("--by", "weather").exit_code == 2


def test_a_bare_home_has_no_history(home):
    done = CliRunner().invoke(main, ["usage", "--json"])
    assert facts(done)["rows"] == []
