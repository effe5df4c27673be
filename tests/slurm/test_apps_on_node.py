"""Applications on real nodes: a person's notebook comes up, is guarded, and ends."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from person import ASKED, HOME, USER, Person

from gateway.core import apps
from gateway.services.environments import own_venv

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(240)]

START_SECONDS, END_SECONDS = 90, 60
CELL = (Path(__file__).parent / "app_cell.py").read_text()


class Apps:
    """Somebody with notebooks."""

    def __init__(self, person: Person, jupyter: str) -> None:
        self.person = person
        self.jupyter = jupyter
        self.person.write("app_cell.py", CELL)

    def submit(self, template: str = "notebook", *, options: str = "", **typed: str) -> int:
        spec = replace(ASKED, name=template, nodes=1, gpus_per_node=0, cpus_per_task=2)
        spec = replace(spec, requeue=False, signal="B:USR1@600", time_limit_minutes=30)
        env = own_venv(self.jupyter)
        return self.person.submit(
            template, spec, environment=env, options=tuple(options.split()), **typed
        )

    def started(self, template: str = "notebook", *, options: str = "", **typed: str) -> int:
        job = self.submit(template, options=options, **typed)
        self.until(job, lambda: self.ready(job) is not None, START_SECONDS)
        return job

    def ready(self, job: int) -> apps.Ready | None:
        text = self.read(apps.ready_path(HOME, job))
        return apps.parse_ready(text, {json.loads(text)["address"]}) if text else None

    def state(self, job: int) -> apps.AppState | None:
        return apps.parse_state(self.read(apps.state_path(HOME, job)))

    def read(self, path: str) -> str:
        return self.person.run("sh", "-c", 'cat "$1" 2>/dev/null || true', "sh", path)

    def ask(self, job: int, path: str, *, key: str | None = None, method: str = "GET") -> int:
        return self.answer(job, path, key=key, method=method)[0]

    def answer(
        self, job: int, path: str, *, key: str | None = None, method: str = "GET"
    ) -> tuple[int, bytes]:
        door = self.ready(job)
        assert door is not None
        headers = {apps.KEY_HEADER: door.key if key is None else key}
        url = f"http://{door.address}:{door.port}{path}"
        asked = urllib.request.Request(url, headers=headers, method=method)
        try:
            with urllib.request.urlopen(asked, timeout=20) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read()

    def cell(self, job: int, code: str, kernel: str = "") -> tuple[str, str]:
        """The kernel and what the cell printed."""
        words = [apps.ready_path(HOME, job), apps.base(job), code, *([kernel] if kernel else [])]
        python = f"{self.jupyter}/bin/python"
        told = json.loads(self.person.run(python, f"{HOME}/app_cell.py", *words))
        return told["kernel"], told["output"]

    def pids(self, job: int) -> list[str]:
        """The processes that have this job's number in their environment."""
        look = 'grep -lsz "^SLURM_JOB_ID=$1$" /proc/[0-9]*/environ | cut -d/ -f3; true'
        return self.person.run("sh", "-c", look, "sh", str(job)).split()

    def until(self, job: int, true: Callable[[], bool], seconds: float) -> None:
        end = time.monotonic() + seconds
        while not true():
            told = self.read(apps.state_path(HOME, job))
            assert time.monotonic() < end, (self.person.show(job), told, self.log(job))
            time.sleep(0.1)

    def log(self, job: int) -> str:
        return self.person.run("sh", "-c", f"cat {HOME}/*-{job}.out 2>/dev/null || true")

    def gone(self, job: int) -> None:
        self.until(job, lambda: not self.pids(job), END_SECONDS)
        assert self.read(apps.ready_path(HOME, job)) == ""


@pytest.fixture
def people(person: Person, jupyter: str) -> Apps:
    person.run("rm", "-rf", f"{HOME}/.sluice")
    return Apps(person, jupyter)


def test_a_cell_finds_the_datasets_and_one_that_can_be_written_is_refused(people: Apps) -> None:
    job = people.started(datasets="/usr/share")
    _, told = people.cell(job, "import os; print(os.environ['SLUICE_DATASETS'])")
    assert told.strip() == "/usr/share"
    people.person.run("scancel", str(job))
    refused = people.submit(datasets=HOME)
    people.until(refused, lambda: "can be written" in people.log(refused), START_SECONDS)
    people.gone(refused)
    assert people.ready(refused) is None


def test_a_cell_runs_through_the_door_and_nobody_gets_in_without_the_key(people: Apps) -> None:
    job = people.started()
    door = people.ready(job)
    assert door is not None
    path, base = apps.ready_path(HOME, job), apps.base(job)
    modes = people.person.run("stat", "-c", "%a %U", path, apps.folder(HOME, job))
    assert modes.split() == ["600", USER, "700", USER]
    assert people.cell(job, "import getpass; print(6 * 7, getpass.getuser())")[1] == f"42 {USER}\n"
    assert people.ask(job, f"{base}api") == 200
    for wrong in ("", "no", door.key[:-1], door.key + "x"):
        assert people.ask(job, f"{base}api", key=wrong) == 403
    assert people.ask(job, f"/apps/{job + 1}/api") == 404
    assert people.ask(job, f"{base}api/kernels", method="POST") == 403  # of another site's page
    said = people.person.run("sh", "-c", "cat /proc/[0-9]*/cmdline 2>/dev/null || true")
    assert door.key not in said
    assert door.key not in people.log(job)
    people.person.run("scancel", str(job))
    people.gone(job)


def test_two_on_one_node_do_not_meet(people: Apps) -> None:
    one = people.started(options="--nodelist=a100-1 --mem=2G")
    two = people.started(options="--nodelist=a100-1 --mem=2G")
    doors = people.ready(one), people.ready(two)
    assert doors[0] is not None
    assert doors[1] is not None
    assert doors[0].address == doors[1].address
    assert doors[0].port != doors[1].port
    assert people.ask(one, f"{apps.base(one)}api", key=doors[1].key) == 403
    assert people.ask(two, f"{apps.base(one)}api", key=doors[1].key) == 404
    people.cell(one, "mine = 1")
    listed = people.answer(two, f"{apps.base(two)}api/kernels")
    assert listed == (200, b"[]")


def test_a_program_that_is_killed_is_told_with_its_last_lines(people: Apps) -> None:
    job = people.started()
    kernel, _ = people.cell(job, "print('here')")
    people.person.run("pkill", "-9", "-f", f"jupyter-lab.*/apps/{job}/")
    shown = people.person.ended(job, END_SECONDS)
    assert (shown["JobState"], shown["ExitCode"]) == ("FAILED", "137:0")
    state = people.state(job)
    assert state is not None
    assert state.phase is apps.Phase.FAILED
    assert kernel in state.text
    people.gone(job)


def test_cancel_leaves_no_process_though_a_kernel_does_not_listen(people: Apps) -> None:
    job = people.started()
    deaf = (
        "import os, signal, subprocess\n"
        "subprocess.Popen(['setsid', 'sleep', '600'], start_new_session=True)\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print(os.getpid())"
    )
    _, pid = people.cell(job, deaf)
    assert pid.strip() in people.pids(job)
    people.person.run("scancel", str(job))
    assert people.person.ended(job, END_SECONDS)["JobState"] == "CANCELLED"
    people.gone(job)
    state = people.state(job)
    assert state is not None
    assert (state.phase, state.why) == (apps.Phase.STOPPING, apps.Why.CANCELLED)


def test_a_kernel_that_hangs_does_not_hold_the_door(people: Apps) -> None:
    job = people.started()
    _, pid = people.cell(job, "import os; print(os.getpid())")
    people.person.run("kill", "-STOP", pid.strip())
    began = time.monotonic()
    assert people.ask(job, f"{apps.base(job)}.sluice/state") == 200
    assert people.ask(job, f"{apps.base(job)}lab") == 200
    assert time.monotonic() - began < 5
    assert people.cell(job, "print('another')")[1] == "another\n"
    people.person.run("scancel", str(job))
    people.gone(job)


def test_the_job_of_a_node_that_dies_ends_and_its_door_with_it(people: Apps) -> None:
    job = people.started(options="--nodelist=a100-2")
    door = people.ready(job)
    assert door is not None
    run = people.person.cluster.run
    try:
        run(["scontrol", "update", "nodename=a100-2", "state=down", "reason=test"])
        assert people.person.ended(job, END_SECONDS)["JobState"] == "NODE_FAIL"
        people.until(job, lambda: not people.pids(job), END_SECONDS)
    finally:
        run(["scontrol", "update", "nodename=a100-2", "state=resume"])
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(f"http://{door.address}:{door.port}/", timeout=5)


def test_an_idle_notebook_is_warned_kept_and_stopped(people: Apps) -> None:
    job = people.started(idle_hours="0.003")  # 11 s, of which the last half is warned
    base = apps.base(job)
    people.until(job, lambda: _phase(people, job) is apps.Phase.WARNED, 20)
    status, told = people.answer(job, f"{base}.sluice/state")
    state = apps.parse_state(told)
    assert status == 200
    assert state is not None
    assert state.stops_at is not None
    assert (state.why, state.idle_seconds) == (apps.Why.IDLE, 11)
    assert people.ask(job, f"{base}.sluice/keep", method="POST") == 200
    assert _phase(people, job) is apps.Phase.READY
    shown = people.person.ended(job, END_SECONDS)
    assert (shown["JobState"], shown["ExitCode"]) == ("COMPLETED", "0:0")
    ended = people.state(job)
    assert ended is not None
    assert (ended.phase, ended.why) == (apps.Phase.STOPPING, apps.Why.IDLE)
    assert ended.at > state.stops_at
    people.gone(job)


def test_a_kernel_that_calculates_is_not_idle(people: Apps) -> None:
    job = people.started(idle_hours="0.002")  # 7 s
    _, told = people.cell(job, "import time; time.sleep(12); print('done')")
    assert told == "done\n"
    assert people.ask(job, f"{apps.base(job)}.sluice/keep", method="POST") == 200
    people.person.run("scancel", str(job))
    people.gone(job)


def test_the_warning_of_the_time_limit_follows_a_limit_that_is_moved(people: Apps) -> None:
    job = people.started(options="--time=30 --signal=B:USR1@600")
    people.person.run("scontrol", "update", f"jobid={job}", "timelimit=2")
    people.person.run("scancel", "--batch", "--signal=USR1", str(job))
    people.until(job, lambda: _phase(people, job) is apps.Phase.WARNED, 20)
    state = people.state(job)
    assert state is not None
    assert state.why is apps.Why.TIME_LIMIT
    people.person.cluster.run(["scontrol", "update", f"jobid={job}", "timelimit=30"])
    people.until(job, lambda: _phase(people, job) is apps.Phase.READY, 60)
    people.person.run("scancel", str(job))
    people.gone(job)


def test_tensorboard_has_a_network_of_its_own(people: Apps) -> None:
    job = people.started("tensorboard")
    base = apps.base(job)
    assert people.ask(job, f"{base}data/environment") == 200
    assert b"tb-webapp" in people.answer(job, base)[1]
    look = (
        'for p in $(pgrep -f "tensorboard.*--path_prefix=/apps/$1/"); do'
        " readlink /proc/$p/ns/net; done; readlink /proc/self/ns/net"
    )
    spaces = people.person.run("sh", "-c", look, "sh", str(job)).split()
    assert len(spaces) > 1
    assert spaces[-1] not in spaces[1:-1]
    assert people.person.run("sh", "-c", "grep -c :1F40 /proc/net/tcp || true").strip() == "0"
    people.person.run("scancel", str(job))
    people.gone(job)


def test_what_was_installed_in_a_notebook_is_saved_from_its_page(people: Apps) -> None:
    install = (
        "import pathlib, sysconfig\n"
        "place = pathlib.Path(sysconfig.get_path('purelib'), 'installed_here')\n"
        "place.mkdir()\n"
        "(place / '__init__.py').write_text('word = 1')\n"
        "import installed_here; print(installed_here.__file__)"
    )
    job = people.started()
    base = apps.base(job)
    assert "/overlays/" in people.cell(job, install)[1]
    assert people.ask(job, f"{base}.sluice/save", method="POST") == 202

    def state() -> apps.AppState:
        found = apps.parse_state(people.answer(job, f"{base}.sluice/state")[1])
        assert found is not None
        return found

    people.until(job, lambda: not state().saving, END_SECONDS)
    assert state().save_error == ""
    kept = f"/home/{USER}/.sluice/snapshots/documents/{state().saved}.json"
    assert json.loads(people.read(kept))["job"] == str(job)
    people.person.run("scancel", str(job))
    people.gone(job)


def test_an_environment_without_the_program_says_so(people: Apps) -> None:
    job = people.submit("vscode")
    shown = people.person.ended(job, END_SECONDS)
    assert (shown["JobState"], shown["ExitCode"]) == ("FAILED", "78:0")
    state = people.state(job)
    assert state is not None
    assert state.phase is apps.Phase.FAILED
    assert "code-server is not there" in state.text


def _phase(people: Apps, job: int) -> apps.Phase | None:
    state = people.state(job)
    return state.phase if state else None
