"""An application from the start of its program to its end, in real processes without Slurm."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from app_programs import ECHO, KIT, Job, until
from nvml_machine import Node, busy

from sluice_train.app import ports

PORT = ("--listen=port",)
ISOLATED = ("--listen=port", "--isolate")


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Callable[..., Job]]:
    made: list[Job] = []

    def make(**environment: str) -> Job:
        made.append(Job(tmp_path, number=7 + len(made), **environment))
        return made[-1]

    yield make
    for job in made:
        job.kill()


def test_its_files_are_for_its_owner_alone(jobs: Callable[..., Job]) -> None:
    job = jobs().echo("{base}")
    ready = job.ready()
    assert set(ready) == {"address", "port", "key", "pid", "at"}
    assert (ready["address"], len(str(ready["key"]))) == ("127.0.0.1", 43)
    modes = [oct(path.stat().st_mode & 0o777) for path in (job.folder, job.folder / "ready.json")]
    assert modes == ["0o700", "0o600"]
    assert (job.folder / "state.json").stat().st_mode & 0o777 == 0o600


def test_a_program_that_does_not_know_its_base_gets_paths_without_it(
    jobs: Callable[..., Job],
) -> None:
    job = jobs().echo()
    assert b'"path": "/a?b=c"' in job.ask(f"{job.base}a?b=c")
    assert b'"path": "/"' in job.ask(job.base)


def test_the_key_is_in_no_argument_no_environment_and_no_output(jobs: Callable[..., Job]) -> None:
    job = jobs().echo("{base}")
    key = str(job.ready()["key"]).encode()
    assert job.process is not None
    pids = [job.process.pid, *_children(job.process.pid)]
    assert len(pids) > 1
    for pid in pids:
        for name in ("cmdline", "environ"):
            assert key not in Path(f"/proc/{pid}/{name}").read_bytes()
    job.process.send_signal(signal.SIGTERM)
    assert key.decode() not in job.ended()[1]


def test_term_ends_the_program_and_all_that_it_has_left_behind(jobs: Callable[..., Job]) -> None:
    deaf = (
        "import signal, subprocess, sys, time\n"
        "code = 'import signal, time; signal.signal(15, 1); time.sleep(600)'\n"
        "subprocess.Popen(['setsid', '-f', sys.executable, '-c', code])\n"
    )
    job = jobs().start(sys.executable, "-c", deaf + ECHO, "{socket}", "{base}")
    job.ready()
    assert job.process is not None
    until(lambda: len(_children(job.process.pid)) > 1, 10, lambda: "no orphan")
    pids = _children(job.process.pid)
    job.process.send_signal(signal.SIGTERM)
    code, output = job.ended()
    assert (code, job.state()["phase"], job.state()["why"]) == (0, "stopping", "cancelled")
    assert "stopping: cancelled" in output
    assert [pid for pid in pids if _lives(pid)] == []
    assert not (job.folder / "ready.json").exists()


def test_a_program_that_dies_is_told_with_its_last_lines(jobs: Callable[..., Job]) -> None:
    job = jobs().echo("{base}")
    job.ready()
    assert job.process is not None
    os.kill(_children(job.process.pid)[0], signal.SIGKILL)
    assert job.ended()[0] == 137
    assert job.state()["phase"] == "failed"
    assert "listening at" in str(job.state()["text"])


def test_a_program_that_never_comes_up(jobs: Callable[..., Job]) -> None:
    code = "import sys; print('no such licence'); sys.exit(3)"
    job = jobs().start(sys.executable, "-c", code, "{socket}")
    assert job.ended()[0] == 3
    assert job.state()["phase"] == "failed"
    assert "exit code 3\nno such licence" in str(job.state()["text"])


def test_a_program_that_ends_well_was_ended_by_its_person(jobs: Callable[..., Job]) -> None:
    quits = "import os, threading; threading.Timer(2, lambda: os._exit(0)).start()\n"
    job = jobs().start(sys.executable, "-c", quits + ECHO, "{socket}", "{base}")
    job.ready()
    assert job.ended()[0] == 0
    assert (job.state()["phase"], job.state()["why"]) == ("stopping", "quit")


@pytest.mark.parametrize(
    ("words", "options", "sentence"),
    [
        (("no-such-program", "{socket}"), ("--listen=socket",), "no-such-program is not there"),
        (("true",), ("--listen=socket", "--folder=gone"), "the folder to show is not there"),
    ],
)
def test_what_is_missing_is_said(
    jobs: Callable[..., Job], words: tuple[str, ...], options: tuple[str, ...], sentence: str
) -> None:
    job = jobs().start(*words, options=options)
    code, output = job.ended()
    assert code == 78
    assert sentence in output


def test_a_port_that_somebody_took_meanwhile(jobs: Callable[..., Job], tmp_path: Path) -> None:
    """The program is told a free port, and another process is faster."""
    told, taken = tmp_path / "told", tmp_path / "taken"
    waits = (
        "import os, pathlib, sys, time\n"
        f"told, taken = pathlib.Path({str(told)!r}), pathlib.Path({str(taken)!r})\n"
        "if not told.exists():\n"
        "    told.with_name('aside').write_text(sys.argv[1])\n"
        "    os.rename(told.with_name('aside'), told)\n"
        "    while not taken.exists(): time.sleep(0.01)\n"
    )
    job = jobs().start(sys.executable, "-c", waits + ECHO, "{port}", "{base}", options=PORT)
    until(told.exists, 20, job.told)
    with socket.create_server(("127.0.0.1", int(told.read_text()))):
        taken.touch()
        assert b" 200 " in job.ask(job.base)
    job.kill()


def test_a_port_of_another_person_is_not_shown_as_ones_own() -> None:
    if os.getuid() != 0:
        pytest.skip("needs a second person")
    words = ["/usr/bin/python3", "-c", ECHO, str(port := _free())]  # ours may lie in our home
    stranger = subprocess.Popen(words, user=65534, stdout=subprocess.PIPE)
    try:
        assert stranger.stdout is not None
        stranger.stdout.readline()
        assert not ports.is_ours(port)
        assert not ports.is_free(port)
    finally:
        stranger.kill()
        stranger.communicate()
    with socket.create_server(("127.0.0.1", port)):
        assert ports.is_ours(port)


def test_the_door_takes_a_port_of_those_that_the_site_allows(jobs: Callable[..., Job]) -> None:
    lowest = 23_456
    with socket.create_server(("127.0.0.1", lowest)):
        only = f"{lowest}-{lowest}"
        refused = jobs(SLUICE_APP_PORTS=only).echo("{base}")
        code, output = refused.ended()
        assert code == 69
        assert f"no port of {only} is free" in output
        found = jobs(SLUICE_APP_PORTS=f"{lowest}-{lowest + 1}").echo("{base}").ready()
        assert found["port"] == lowest + 1
    code, output = jobs(SLUICE_APP_PORTS="80-90").echo("{base}").ended()
    assert code == 78


def test_an_idle_one_is_warned_and_stopped_and_one_in_use_is_not(
    jobs: Callable[..., Job],
) -> None:
    job = jobs(SLUICE_APP_IDLE_SECONDS="3").echo("{base}")
    ready_at = float(str(job.ready()["at"]))
    end = time.monotonic() + 4
    while time.monotonic() < end:
        job.ask(job.base)
        time.sleep(0.2)
    assert job.state()["phase"] in {"ready", "starting"}
    until(lambda: job.state()["phase"] == "warned", 5, job.told)
    assert job.state()["why"] == "idle"
    assert job.ended()[0] == 0
    state = job.state()
    assert (state["phase"], state["why"]) == ("stopping", "idle")
    assert float(str(state["at"])) - ready_at > 6.5


def _with_cards(node: Node, machine: str) -> dict[str, str]:
    """Two of the node's four cards are the job's. NVIDIA's library is the tests' double."""
    node.has(machine)
    double = {name: node.environment[name] for name in ("NVML_DOUBLE", "LD_LIBRARY_PATH")}
    return {**double, "CUDA_VISIBLE_DEVICES": "1,3", "SLUICE_APP_IDLE_SECONDS": "2"}


def test_cards_that_work_keep_it(jobs: Callable[..., Job], node: Node) -> None:
    machine = busy(0, util=0) + busy(1, util=0) + busy(2, util=0) + busy(3, util=60)
    job = jobs(**_with_cards(node, machine)).echo("{base}")
    job.ready()
    time.sleep(4)  # twice as long as an idle one has
    assert b'"gpu_util": 60.0' in job.ask(f"{job.base}.sluice/state")


def test_cards_of_others_do_not_keep_it(jobs: Callable[..., Job], node: Node) -> None:
    machine = busy(0, util=99) + busy(1, util=4) + busy(2, util=99) + busy(3, util=0)
    job = jobs(**_with_cards(node, machine)).echo("{base}")
    assert job.ended()[0] == 0
    assert (job.state()["why"], job.state()["gpu_util"]) == ("idle", 4.0)


def test_a_driver_that_hangs_does_not_keep_it(jobs: Callable[..., Job], node: Node) -> None:
    machine = busy(1) + busy(3) + "sleep nvmlDeviceGetUtilizationRates 300\n"
    job = jobs(**{**_with_cards(node, machine), "CUDA_VISIBLE_DEVICES": "0,1"}).echo("{base}")
    assert job.ended()[0] == 0
    assert (job.state()["why"], job.state()["gpu_util"]) == ("idle", None)


def test_the_time_limit_stops_it_in_time(jobs: Callable[..., Job]) -> None:
    """Slurm tells no end here: what the warning's lead says counts."""
    job = jobs(SLUICE_LEAD="4").echo("{base}")
    job.ready()
    assert job.process is not None
    began = time.monotonic()
    job.process.send_signal(signal.SIGUSR1)
    until(lambda: job.state()["phase"] == "warned", 5, job.told)
    assert job.state()["why"] == "time_limit"
    job.ask(f"{job.base}.sluice/keep", "Content-Length: 0", method="POST")  # no help here
    assert job.ended()[0] == 0
    assert time.monotonic() - began < 4
    assert (job.state()["phase"], job.state()["why"]) == ("stopping", "time_limit")


def _may_isolate() -> bool:
    words = ["unshare", "--user", "--map-current-user", "--net", "true"]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not _may_isolate(), reason="no user namespaces here")
def test_an_isolated_program_is_reached_through_the_door_alone(jobs: Callable[..., Job]) -> None:
    job = jobs().echo("{base}", place="{port}", options=ISOLATED)
    assert b'"path": "/apps/7/a"' in job.ask(f"{job.base}a")
    assert job.process is not None
    inner = _children(job.process.pid)
    spaces = {os.readlink(f"/proc/{pid}/ns/net") for pid in inner}
    assert os.readlink("/proc/self/ns/net") not in spaces
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", 8000)) != 0
    job.process.send_signal(signal.SIGTERM)
    assert job.ended()[0] == 0
    assert [pid for pid in inner if _lives(pid)] == []


@pytest.mark.skipif(not _may_isolate(), reason="no user namespaces here")
def test_without_namespaces_an_isolated_program_is_not_started(tmp_path: Path) -> None:
    """In a user namespace that allows no further ones."""
    none = 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"'
    inside = [sys.executable, "-m", "sluice_train.app", "inside", str(tmp_path / "s"), "8000"]
    words = ["unshare", "--user", "--map-root-user", "sh", "-c", none, "sh", *inside]
    done = subprocess.run(
        [*words, "--", "touch", str(tmp_path / "started")],
        env={**os.environ, "PYTHONPATH": str(KIT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 78
    assert "it is not started" in done.stderr
    assert not (tmp_path / "started").exists()


def test_a_long_temporary_folder_does_not_make_a_socket_too_long(
    jobs: Callable[..., Job], tmp_path: Path
) -> None:
    long = tmp_path / ("x" * 90)
    long.mkdir()
    job = jobs(TMPDIR=str(long)).echo("{base}")
    assert b" 200 " in job.ask(job.base)


def test_what_a_kill_left_is_taken_over(jobs: Callable[..., Job]) -> None:
    """A job that Slurm started again: the old door must not be believed."""
    job = jobs()
    job.folder.mkdir(parents=True)
    (job.folder / "ready.json").write_text("{}")
    (job.folder / ".ready.json.tmp").write_text("torn")
    job.start(shutil.which("sleep") or "sleep", "30")
    until(lambda: not (job.folder / "ready.json").exists(), 10, job.told)


def _children(pid: int) -> list[int]:
    """All below it, parents first."""
    path = Path(f"/proc/{pid}/task/{pid}/children")
    found = [int(word) for word in path.read_text().split()] if path.exists() else []
    return [*found, *(below for child in found for below in _children(child))]


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _free() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
