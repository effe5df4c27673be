"""`sluice render` and `sluice template show` as somebody types them."""

import json
import subprocess

import pytest
from click.testing import CliRunner

from gateway.cli import main
from gateway.core.sbatch import parse_directives

SITE = ("--set", "account=nlp", "--set", "partition=a100", "--set", "qos=spot")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SLUICE_NODE_KIT", "/shared/kit")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


def run(*words):
    return CliRunner().invoke(main, words)


def render(*words):
    return run("render", *SITE, *words)


def directives(script):
    return {one.name: one.value for one in parse_directives(script)}


def test_a_script_has_all_its_lines_and_needs_no_database(home, tmp_path):
    done = render("-t", "ddp", "--set", "nodes=2", "--set", "nproc_per_node=4")
    assert (done.exit_code, done.stderr) == (0, "")
    assert not home.exists()
    lines = directives(done.stdout)
    assert (lines["account"], lines["partition"], lines["qos"]) == ("nlp", "a100", "spot")
    assert (lines["nodes"], lines["gpus-per-node"], lines["cpus-per-task"]) == ("2", "4", "16")
    assert (lines["chdir"], lines["time"]) == (str(tmp_path), "0-01:00:00")
    assert "\nexport SLUICE_KIT=/shared/kit\n" in done.stdout
    assert "\nexport NPROC_PER_NODE=4\n" in done.stdout
    checked = subprocess.run(
        ["bash", "-n"], input=done.stdout, capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stderr) == (0, "")


def test_what_only_a_site_knows_is_named_on_the_side():
    done = run("render", "-t", "command", "--set", "command=nvidia-smi -L", "--set", "account=nlp")
    assert done.exit_code == 0
    assert done.stderr == "Not of your site, set them: partition=gpu, qos=normal\n"
    assert directives(done.stdout)["account"] == "nlp"


def test_it_goes_into_a_file_as_it_is(tmp_path):
    words = ("-t", "single-gpu", "--set", "time_limit=2-12", "--set", "gpu_type=h100")
    printed = render(*words)
    done = render(*words, "--output", "job.sbatch")
    assert (done.exit_code, done.output) == (0, "")
    assert (tmp_path / "job.sbatch").read_text() == printed.stdout
    assert directives(printed.stdout)["gpus-per-node"] == "h100:1"
    assert directives(printed.stdout)["time"] == "2-12:00:00"


def test_a_table_comes_from_a_file(tmp_path):
    (tmp_path / "rows.csv").write_text("lr\n0.1\n0.01\n")
    done = render("-t", "sweep", "--set", "table=@rows.csv", "--set", "max_at_once=1")
    assert directives(done.stdout)["array"] == "0-1%1"
    assert "\nrow --lr=0.1\nrow --lr=0.01\n" in done.stdout
    missing = render("-t", "sweep", "--set", "table=@gone.csv")
    assert missing.exit_code == 2
    assert "table: " in missing.stderr


def test_an_environment_is_one_of_the_list_or_a_path(home):
    home.mkdir()
    (home / "environments.toml").write_text(
        '[[environment]]\nname = "torch"\nkind = "prefix"\npath = "/opt/torch"\n'
        'title = { en = "T", zh_Hans = "T" }\n'
    )
    assert "/opt/torch/bin" in render("-t", "ddp", "--environment", "torch").stdout
    assert ". /my/venv/bin/activate" in render("-t", "ddp", "--environment", "/my/venv").stdout
    gone = render("-t", "ddp", "--environment", "gone")
    assert gone.exit_code == 1
    assert "There is no such environment. There are: none, torch." in gone.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("-t", "dpp"), "There is no such template. There are: "),
        (("-t", "ddp", "--set", "node=2"), "node is nothing that can be set. There are: group, "),
        (("-t", "ddp", "--set", "command=ls"), "command is nothing that can be set."),
        (("-t", "ddp", "--set", "nodes"), "--set takes NAME=VALUE, not 'nodes'."),
        (("-t", "ddp", "--set", "nodes=0"), "nodes: At least 1."),
        (("-t", "ddp", "--set", "checkpoint_hours=x"), "checkpoint_hours: Type hours, "),
        (("-t", "ddp", "--set", "name=a b"), "name: Letters, digits"),
        (
            (
                "-t",
                "sweep",
            ),
            "table: Fill this in.",
        ),
    ],
)
def test_what_cannot_be_is_said_and_nothing_is_printed(words, says):
    done = render(*words)
    assert done.exit_code != 0
    assert done.stdout == ""
    assert says in done.stderr


def test_all_that_is_wrong_is_said_at_once():
    done = render("-t", "ddp", "--set", "nodes=0", "--set", "max_restarts=-1")
    assert done.stderr == "Error: nodes: At least 1.\nmax_restarts: At least 0.\n"


def test_a_template_is_shown_with_what_it_asks():
    done = run("template", "show", "ddp")
    assert done.exit_code == 0
    assert "nodes  1 to 64, default 1\n" in done.stdout
    assert "script  path, required, default train.py\n" in done.stdout
    assert "checkpoint_hours  hours, min 0, max 168, default 2\n" in done.stdout
    assert "stop_with  choice, one of file, term, default file\n" in done.stdout
    gone = run("template", "show", "gone")
    assert gone.exit_code == 1
    assert "There are: " in gone.stderr


def test_a_template_is_shown_to_programs_in_the_language_they_ask_for():
    done = run("template", "show", "sweep", "--json", "--language", "zh_Hans")
    facts = json.loads(done.stdout)
    assert facts["title"] == "参数扫描"
    assert facts["array"] == {"rows": "table", "at_once": "max_at_once"}
    assert facts["numbers"]["nodes"] == {"min": 1, "max": 1, "default": 1}
    fields = {field["name"]: field for field in facts["fields"]}
    assert fields["table"]["required"]
    assert fields["checkpoint_keep"]["section"] == "more"
    assert fields["run_name"]["label"] == "训练名称"


def test_a_template_is_checked_by_its_folder_or_by_its_name(home, tmp_path):
    done = run("template", "check", "ddp")
    assert (done.exit_code, done.output) == (0, "1 checked, nothing to complain about\n")
    own = home / "sbatch_templates" / "ddp"  # hides the shipped one
    own.mkdir(parents=True)
    done = run("template", "check", "ddp")
    assert done.exit_code == 1
    assert f"{own / 'manifest.toml'}:1: there is no such file" in done.output
    (tmp_path / "ddp").mkdir()
    assert str(tmp_path / "ddp" / "manifest.toml") in run("template", "check", "ddp").output
    assert "gone:1: no such folder" in run("template", "check", "gone").output
