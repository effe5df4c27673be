"""`sluice history import` as an administrator types it."""

import gzip
import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from gateway.cli import main
from gateway.store.squeezed import NOTHING
from gateway.testing import builders
from gateway.testing.money import set_terms
from tests.cli.test_money_commands import begin

__all__ = ["begin"]

HEADER = "JobIDRaw|JobID|JobName|User|Account|Partition|State|Submit|Start|End|Elapsed|AllocTRES"
NIGHT = "2026-01-31T22:00:00|2026-01-31T22:00:00|2026-02-01T04:00:00|06:00:00|gres/gpu=8"
DUMP = f"{HEADER}\n50|50|a|b|nlp-1|nlp|a100|COMPLETED|{NIGHT}\n"
STEP = f"50.batch|50.batch|batch||||COMPLETED|{NIGHT}\n"
WEIRD = f"51|51|n|nlp-1|nlp|a100|WEIRD|{NIGHT}\n"


@pytest.fixture
def run(home):
    def _run(*words, **values):
        return CliRunner().invoke(main, ["history", "import", *words], **values)

    assert CliRunner().invoke(main, ["db", "upgrade"]).exit_code == 0
    return _run


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    path = tmp_path / "dump.psv"
    path.write_text(DUMP + STEP + WEIRD)
    return path


def test_it_says_in_words_what_it_did(run, dump):
    done = run(str(dump), "--format", "sacct")
    assert done.exit_code == 0, done.output
    assert "3 rows in the file: 1 stored, 1 steps left out, 1 held for review." in done.output
    assert "2 jobs and runs of the database are new or changed, stored as those of" in done.output
    assert "the cluster cluster." in done.output
    assert "kept with their text" in done.output


def test_the_same_for_programs_and_again(run, dump):
    packed = dump.with_suffix(".gz")
    packed.write_bytes(gzip.compress(dump.read_bytes()))
    for changed, newly in ((2, 1), (0, 0)):
        done = run(str(packed), "--format", "sacct", "--json", "--timezone", "Asia/Shanghai")
        assert json.loads(done.output) == {
            "records": 3,
            "stored": 1,
            "changed": changed,
            "steps": 1,
            "held": 1,
            "newly_held": newly,
            "clusters": ["cluster"],
            "cut": None,
            "ties": True,
        }


def test_a_rare_separator_of_several_signs(run, dump):
    dump.write_text(DUMP.replace("a|b", "ab").replace("|", "@7f@"))
    done = run(str(dump), "--format", "sacct", "--delimiter", "@7f@", "--cluster", "old")
    assert (done.exit_code, "1 rows in the file: 1 stored" in done.output) == (0, True)


@pytest.mark.parametrize(
    ("words", "text", "sentence"),
    [
        ([], "JobID|State\n1|COMPLETED\n", "the file lacks columns: User, Account, Partition"),
        ([], "", "the first line does not name columns"),
        (["--timezone", "Mars/Base"], DUMP, "'Mars/Base' is no time zone"),
    ],
)
def test_what_cannot_be_imported_is_one_sentence(run, dump, words, text, sentence):
    dump.write_text(text)
    done = run(str(dump), "--format", "sacct", *words)
    assert done.exit_code == 1
    assert sentence in done.output
    assert "Traceback" not in done.output


def test_counts_that_do_not_tie_fail(run, dump, monkeypatch):
    from gateway.cli import history_import

    def lossy(source):
        for batch in read(source):
            yield replace(batch, jobs=NOTHING, runs=NOTHING)

    read = history_import.feed
    monkeypatch.setattr(history_import, "feed", lossy)
    done = run(str(dump), "--format", "sacct")
    assert done.exit_code == 1
    assert "do not tie" in done.output


def test_a_bare_home_needs_nothing_else(home, dump):
    done = CliRunner().invoke(main, ["history", "import", str(dump), "--format", "sacct"])
    assert done.exit_code == 0, done.output
    told = CliRunner().invoke(main, ["waits", "--by", "gpu_class", "--wait", "submit", "--json"])
    assert json.loads(told.output)["jobs"] == 1


def test_an_older_database_is_not_changed_by_the_way(home, dump):
    home.mkdir()
    with closing(sqlite3.connect(home / "sluice.db")) as older:
        older.execute("CREATE TABLE person (id INTEGER)")
    done = CliRunner().invoke(main, ["history", "import", str(dump), "--format", "sacct"])
    assert done.exit_code == 1
    assert "sluice db upgrade" in done.output


def test_an_import_that_was_killed_while_it_made_the_database_is_done_again(home, dump):
    home.mkdir()
    (home / "sluice.db").touch()  # all that is left: the tables come whole or not at all
    done = CliRunner().invoke(main, ["history", "import", str(dump), "--format", "sacct"])
    assert done.exit_code == 0, done.output


def test_the_same_jobs_under_another_name_are_not_taken_by_accident(run, dump, begin):
    builders.add_job(begin, cluster="dev")
    done = run(str(dump), "--format", "sacct")
    assert done.exit_code == 1
    assert "The portal has jobs of dev" in done.output
    assert "say --cluster dev" in done.output
    assert run(str(dump), "--format", "sacct", "--cluster", "dev").exit_code == 0


def test_where_a_qos_changes_the_price_the_file_must_say_it(run, dump, begin):
    set_terms(begin, "spot", "0.82")
    done = run(str(dump), "--format", "sacct")
    assert done.exit_code == 1
    assert "the file lacks columns: QOS" in done.output
