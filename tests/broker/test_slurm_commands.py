"""sacct, sacctmgr and sbatch as programs that print what the test wants."""

import json
import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest
from test_sacct_rows import row

from gateway.broker.accounts import Account
from gateway.broker.commands import Commands, Output
from gateway.broker.sacct import Sacct
from gateway.broker.sacctmgr import Sacctmgr
from gateway.broker.sbatch import Estimator
from gateway.core.qos import tres
from gateway.errors import BrokerRefused, BrokerUnreachable
from gateway.testing.contracts import Cast, request

NOW = datetime(2026, 1, 2, tzinfo=UTC)
PERSON = Account("nlp-1", os.getuid(), os.getgid(), (), "/home/nlp-1", "/bin/bash")


@dataclass
class Printed:
    """Answers each command by the first of its words that is known."""

    answers: dict[str, str]
    status: int = 0
    stderr: str = ""
    calls: list[list[str]] = field(default_factory=list)

    def run(self, argv, *, person=None, stdin="", environment=None):
        self.calls.append(list(argv))
        text = next((text for word, text in self.answers.items() if word in argv), "")
        raw = text.encode("utf-8", "surrogateescape")
        return Output(self.status, raw, self.stderr)


def sacct_of(rows, ids):
    answer = json.dumps({"jobs": rows, "errors": []}, ensure_ascii=False)
    return Sacct(Printed({"--json": answer, "--parsable2": ids}))


IDS = "7|1001|2002|1767222000|0\n"


def test_both_queries_are_joined_and_counted():
    found = sacct_of([row()], IDS).window(NOW, NOW)
    assert (len(found.runs), found.held, found.counted) == (1, (), 1)
    assert found.runs[0].uid == 2002


def test_a_row_that_only_the_count_knows_is_an_alarm():
    found = sacct_of([row()], IDS + "8|1002|2002|1767222000|0\n").window(NOW, NOW)
    assert found.counted == 2
    assert len(found.runs) == 1


def test_a_row_that_cannot_be_read_is_held_and_the_others_go_on():
    found = sacct_of([row(), row(job_id="x")], IDS + "9|1|2|3|0\n").window(NOW, NOW)
    assert (len(found.runs), len(found.held), found.counted) == (1, 1, 2)


def test_two_runs_of_one_job_are_two_rows():
    again = row(restart_cnt=1)
    again["time"] = {**again["time"], "submission": 1_767_250_000}
    found = sacct_of([row(), again], IDS + "7|1002|2002|1767250000|1\n").window(NOW, NOW)
    assert len(found.runs) == found.counted == 2


def test_bytes_that_are_no_utf8_do_not_stop_the_import():
    found = sacct_of([row(name="caf\udce9")], IDS).window(NOW, NOW)
    assert [run.name for run in found.runs] == ["caf\ufffd"]


@pytest.mark.parametrize("answer", ["", "{", "[]", '{"jobs": null}', '{"jobs": [], "errors": [1]}'])
def test_a_broken_answer_is_no_empty_answer(answer):
    with pytest.raises(BrokerUnreachable):
        Sacct(Printed({"--json": answer, "--parsable2": IDS})).window(NOW, NOW)


def test_a_failed_command_is_no_empty_answer():
    with pytest.raises(BrokerUnreachable):
        Sacct(Printed({}, status=1, stderr="slurmdbd is away")).window(NOW, NOW)


def test_jobs_cancelled_while_held_are_asked_for_too():
    sacct = sacct_of([row()], IDS)
    sacct.window(NOW, NOW)
    assert ["--state=CANCELLED,DEADLINE" in call for call in sacct.commands.calls].count(True) == 2


ASSOCIATIONS = (
    "|nlp||normal,spot|normal|||||gres/gpu=16,cpu=64|||root\n"
    "nlp-1|nlp||normal,spot|normal|4|8|1-00:00:00|cpu=64,gres/gpu=8||cpu=32|gres/gpu=960|\n"
    "nlp-lead|nlp|a100|normal||||||gres/gpu=1|||\n"
)


def test_associations_hold_what_the_account_lends():
    answers = {
        "associations": ASSOCIATIONS,
        "users": "nlp-1|nlp\nnlp-lead|vision\n",
        "accounts": "nlp|nlp-lead\n",
    }
    first, second = Sacctmgr(Printed(answers), "dev").associations().associations
    assert (first.user, first.qos, first.default_qos) == ("nlp-1", ("normal", "spot"), "normal")
    assert (first.max_jobs, first.max_submit_jobs, first.max_wall_minutes) == (4, 8, 1440)
    assert (first.max_gpus_per_job, first.group_max_gpus) == (8, 16)
    assert first.max_tres_per_job == tres({"cpu": 64, "gres/gpu": 8})
    assert first.max_tres_per_node == tres({"cpu": 32})
    assert first.max_tres_minutes_per_job == tres({"gres/gpu": 960})
    assert (first.grp_tres, second.grp_tres) == ((), tres({"gres/gpu": 1}))
    assert (first.is_default_account, first.is_coordinator, first.partition) == (True, False, None)
    assert (second.is_default_account, second.is_coordinator, second.partition) == (
        False,
        True,
        "a100",
    )


def test_an_estimate_is_read_in_utc():
    text = "sbatch: Job 5 to start at 2026-03-02T09:30:00 using 2 processors on nodes a100-1"
    found = Estimator(Printed({}, stderr=text), {}).estimate(PERSON, request(Cast()))
    assert found.start_time == datetime(2026, 3, 2, 9, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("allocation failure: Invalid qos specification", "invalid_qos"),
        (
            "sbatch: error: Batch job submission failed: ?\nallocation failure: what",
            "slurm_refused",
        ),
    ],
)
def test_a_refused_estimate_has_slurms_code(text, code):
    numbers = {"Invalid qos specification": 2066}
    estimator = Estimator(Printed({}, status=1, stderr=text), numbers)
    with pytest.raises(BrokerRefused) as caught:
        estimator.estimate(PERSON, request(Cast()))
    assert caught.value.code == code


def test_a_program_gets_a_small_environment(monkeypatch):
    monkeypatch.setenv("SECRET_KEY", "hunter2")
    monkeypatch.setenv("SBATCH_ACCOUNT", "vision")
    commands = Commands(timeout_seconds=5, slurm_conf="/etc/slurm/slurm.conf")
    done = commands.run(["env"], environment={"A": "b"})
    names = {line.split("=")[0] for line in done.stdout.decode().splitlines()}
    assert names == {"PATH", "LANG", "TZ", "SLURM_CONF", "A"}


def test_a_program_that_hangs_or_is_missing_was_not_there():
    with pytest.raises(BrokerUnreachable):
        Commands(timeout_seconds=0.1).run(["sleep", "10"])
    with pytest.raises(BrokerUnreachable):
        Commands(timeout_seconds=5).run(["no-such-program"])


def test_what_the_broker_was_started_with_is_scrubbed(monkeypatch):
    from gateway.broker.main import scrub

    put = {}
    monkeypatch.setattr(os, "putenv", lambda name, value: put.update({name: value}))
    environ = {
        "PATH": "/usr/bin",
        "HOME": "/root",
        "SLURM_CONF": "/etc/slurm/slurm.conf",
        "SLURM_ACCOUNT": "vision",
        "SBATCH_QOS": "spot",
        "SESSION_KEY": "hunter2",
        "SLUICE_BROKER_SOCKET": "/run/sluice/broker.sock",
    }
    assert scrub(environ) == "/etc/slurm/slurm.conf"
    # pyslurm copies what Python sees; libslurm looks where C sees.
    assert environ == {"PATH": "/usr/bin", "HOME": "/root"}
    assert put["SLURM_CONF"] == "/etc/slurm/slurm.conf"
    assert Path(put["SLURM_CONF"]).is_absolute()
