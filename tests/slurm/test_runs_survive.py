"""What a training run meets on a real cluster: stops, kills, requeues, full disks, wrong places.

The programs here need no PyTorch: the library and the templates are the same with and without.
"""

import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from person import ASKED, HOME, USER, Person

from gateway.core.manifest import Text
from gateway.services.environments import Environment, EnvironmentKind
from gateway.wire.messages import SubmitRequest

pytestmark = pytest.mark.slurm

ONE = replace(ASKED, nodes=1, gpus_per_node=1, cpus_per_task=1, memory_mb_per_node=500)
KIT = "/opt/sluice/kit"

# Counts, and saves where it has come to. Ends when the file `enough` is there.
TRAIN = """\
import pathlib, sys, time
import sluice_train

run = sluice_train.start()
step = int(pathlib.Path(run.resume_path, "step").read_text()) if run.resume_path else 0
print("from", step, flush=True)
while not pathlib.Path("enough").exists():
    step += 1
    time.sleep(0.02)
    if run.step(step, loss=1 / step):
        with run.saving(step) as folder:
            (folder / "step").write_text(str(step))
            (folder / "ballast").write_bytes(b"x" * BALLAST)
            if pathlib.Path("slow").exists():
                pathlib.Path("saving").touch()
                time.sleep(SLOW)
    if run.stopping:
        print("stopped at", step, flush=True)
        break
run.finish()
"""


WRONG_WORLD = """\
import os
os.environ["EXPECT_WORLD"] = "4"
import sluice_train
sluice_train.start()
"""


class Run:
    """One run of the person: its job, its folder, and what it has told."""

    def __init__(self, person: Person, place: str) -> None:
        self.person = person
        self.place = f"{HOME}/{place}"
        self.job = 0
        person.run("rm", "-rf", self.place)
        person.run("mkdir", "-p", self.place)

    def script(self, text: str = TRAIN, *, ballast: int = 10, slow: float = 0) -> "Run":
        text = text.replace("BALLAST", str(ballast)).replace("SLOW", str(slow))
        self.person.run("sh", "-c", 'cat > "$1"', "sh", f"{self.place}/train.py", stdin=text)
        return self

    def submit(
        self,
        template: str = "single-gpu",
        spec: SubmitRequest = ONE,
        *,
        environment: Environment | None = None,
        options: tuple[str, ...] = (),
        kit: str = KIT,
        on_stall: str = "nothing",
        on_preempt: str = "requeue",
        smoke: bool = False,
        **typed: str,
    ) -> "Run":
        here = replace(spec, working_directory=self.place, output=f"{HOME}/%x-%j.out")
        typed = {"run_name": "run", **typed}
        if template == "single-gpu":
            typed = {"script": "train.py", **typed}
        self.job = self.person.submit(
            template,
            here,
            environment=environment,
            options=options,
            kit=kit,
            on_stall=on_stall,
            on_preempt=on_preempt,
            smoke=smoke,
            **typed,
        )
        return self

    def touch(self, name: str) -> None:
        self.person.run("touch", f"{self.place}/{name}")

    def remove(self, name: str) -> None:
        self.person.run("rm", "-f", f"{self.place}/{name}")

    def cat(self, name: str) -> str:
        done = self.person.cluster.run(["cat", f"{self.place}/{name}"])
        return done.stdout

    def exists(self, name: str) -> bool:
        return self.person.cluster.run(["test", "-e", f"{self.place}/{name}"]).returncode == 0

    def events(self, kind: str | None = None, run: str = "run") -> list[dict[str, Any]]:
        found = self.lines(f"sluice-runs/{run}/events.jsonl")
        return [event for event in found if kind is None or event["kind"] == kind]

    def steps(self) -> int:
        """How far it has come."""
        return max(
            (line["step"] for line in self.lines("sluice-runs/run/metrics.jsonl")), default=0
        )

    def lines(self, name: str) -> list[dict[str, Any]]:
        """Whole ones: the last may be seen while it is written."""
        text = self.cat(name)
        return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]

    def output(self) -> str:
        return self.person.output(self.job)

    def until(self, true: Callable[[], object], seconds: float = 90) -> None:
        end = time.monotonic() + seconds
        while not true():
            if time.monotonic() > end:
                raise AssertionError(f"{self.person.show(self.job)}\n{self.output()}")
            time.sleep(0.1)

    def until_training(self, start: int = 1) -> None:
        """Until its `start`-th start has made steps."""
        self.until(lambda: len(self.events("ready")) >= start)
        first = self.steps()
        self.until(lambda: self.steps() > first)

    def until_waiting(self) -> None:
        """Until it is back in the queue; then let it start at once, not when Slurm would. A node
        that is down may take long to give it back."""
        self.until(lambda: self.person.show(self.job)["JobState"] == "PENDING", 120)
        self.start_now()

    def start_now(self) -> None:
        self.person.cluster.run(
            ["scontrol", "update", f"JobId={self.job}", "StartTime=now"],
        )

    def ended(self, seconds: float = 120) -> tuple[str, str]:
        shown = self.person.ended(self.job, seconds)
        return shown["JobState"], shown["ExitCode"].split(":")[0]


@pytest.fixture
def run(person: Person, request: pytest.FixtureRequest) -> Iterator[Run]:
    made = Run(person, re.sub(r"\W+", "-", request.node.name))
    yield made
    if made.job:
        person.cluster.run(["scancel", str(made.job)])
        person.until(made.job, lambda shown: shown["JobState"] not in {"RUNNING", "COMPLETING"}, 60)


def froms(run: Run) -> list[int]:
    return [int(step) for step in re.findall(r"^from (\d+)$", run.output(), re.MULTILINE)]


def test_a_warning_ends_in_a_save_and_a_resume_and_so_does_the_next_one(run: Run) -> None:
    run.script().submit()
    for start in (1, 2):
        run.until_training(start)
        run.person.run("scancel", "--batch", "--signal=USR1", str(run.job))
        run.until_waiting()
    run.until_training(3)
    run.touch("enough")
    assert run.ended() == ("COMPLETED", "0")
    stopped = [event["step"] for event in run.events("stopped")]
    assert froms(run) == [0, *stopped]
    assert [event["action"] for event in run.events("end")] == ["requeue", "requeue", "exit"]
    assert [event["restart"] for event in run.events("start")] == [0, 1, 2]
    assert run.exists("sluice-runs/run/DONE")


def test_at_the_time_limit_it_saves_and_goes_on(run: Run) -> None:
    """The warning comes by Slurm itself, up to a minute early."""
    run.script().submit(spec=replace(ONE, time_limit_minutes=1, signal="B:USR1@30"))
    run.until(lambda: run.events("stopped"), 90)
    run.until_waiting()
    run.until(lambda: len(run.events("ready")) == 2)
    run.touch("enough")
    assert run.ended() == ("COMPLETED", "0")
    assert froms(run)[1] == run.events("stopped")[0]["step"]


@pytest.mark.parametrize("signal", [None, "B:USR1@60"], ids=["no-signal", "signal"])
def test_a_preempted_run_goes_on_where_it_was(run: Run, signal: str | None) -> None:
    """With a user signal the batch script is warned; without, the workers get TERM."""
    whole = replace(ONE, partition="debug", gpus_per_node=2, gpu_type="a100", signal=signal)
    run.script().submit(spec=replace(whole, qos="spot"))
    run.until_training()
    other = run.person.submit("command", replace(whole, qos="urgent"), command="sleep 1")
    run.until(lambda: run.person.show(run.job)["JobState"] == "PENDING", 60)
    run.person.ended(other, 60)
    run.start_now()
    run.until_training(2)
    run.touch("enough")
    assert run.ended() == ("COMPLETED", "0")
    stopped = run.events("stopped")[0]["step"]
    assert froms(run) == [0, stopped]


def test_a_requeue_by_hand_costs_only_what_was_not_saved(run: Run) -> None:
    run.script().submit(checkpoint_hours="0.0003")
    for start in (1, 2):
        run.until_training(start)
        run.until(lambda start=start: start - 1 in [e["restart"] for e in run.events("saved")])
        run.person.run("scontrol", "requeue", str(run.job))
        run.until_waiting()
    run.until_training(3)
    run.touch("enough")
    assert run.ended() == ("COMPLETED", "0")
    starts = run.events("start")
    assert [event["resume_step"] for event in starts][1:] == froms(run)[1:]
    assert all(later > earlier for earlier, later in zip(froms(run), froms(run)[1:], strict=False))


def test_a_node_that_fails_gives_the_run_to_another(run: Run) -> None:
    run.script().submit(checkpoint_hours="0.0003")
    run.until_training()
    run.until(lambda: run.events("saved"))
    node = run.person.show(run.job)["NodeList"]
    cluster = run.person.cluster
    # Drained first: its slurmd lives, and would have it back in service with its next message.
    for state in ("DRAIN", "DOWN"):
        cluster.run(["scontrol", "update", f"NodeName={node}", f"State={state}", "Reason=test"])
    try:
        run.until_waiting()
        run.until_training(2)
        assert run.person.show(run.job)["NodeList"] != node
    finally:
        cluster.run(["scontrol", "update", f"NodeName={node}", "State=RESUME"])
    run.touch("enough")
    assert run.ended() == ("COMPLETED", "0")
    assert froms(run)[1] >= run.events("saved")[0]["step"]


def test_a_kill_during_a_save_leaves_the_save_before(run: Run) -> None:
    run.script(slow=30).submit(checkpoint_hours="0.0003")
    run.until(lambda: len(run.events("saved")) >= 2)
    run.touch("slow")
    run.until(lambda: run.exists("saving"))
    saved = run.events("saved")[-1]["step"]
    begun = run.events("save_begin")[-1]["step"]
    run.person.run("pkill", "-KILL", "-u", USER, "-f", "^python3 train.py")
    assert run.ended()[0] == "FAILED"
    assert begun > saved
    run.remove("slow")
    run.submit()  # by its run name another job goes on with it
    run.until(lambda: len(run.events("ready")) == 2)
    run.touch("enough")
    assert run.ended() == ("COMPLETED", "0")
    assert froms(run) == [saved]
    assert run.exists(f"sluice-runs/run/checkpoints/incomplete/step-{begun:09d}.tmp")


def test_a_kill_during_an_upload_leaves_no_marker_and_the_training_goes_on(run: Run) -> None:
    place = f"{run.place}/second"
    run.person.run("mkdir", place)
    run.script(ballast=30_000_000).submit(
        checkpoint_hours="0.0005", checkpoint_keep="3", upload_to=place, upload_mbps="4"
    )
    run.until(lambda: run.person.run("find", place, "-type", "f", "-size", "+1k").strip())
    run.person.run("pkill", "-KILL", "-u", USER, "-f", "sluice_train.node tend")
    assert "manifest.json" not in run.person.run("find", place)
    before = run.steps()
    run.until(lambda: run.steps() > before + 10)
    run.touch("enough")
    assert run.ended(90) == ("COMPLETED", "0")


def test_what_the_first_place_lost_comes_back_from_the_second(run: Run) -> None:
    place = f"{run.place}/second"
    run.person.run("mkdir", place)
    run.script().submit(checkpoint_hours="0.0003", upload_to=place)
    run.until(lambda: run.events("uploaded"), 60)
    run.person.run("scancel", "--batch", "--signal=USR1", str(run.job))
    run.until(lambda: run.person.show(run.job)["JobState"] == "PENDING")
    stopped = run.events("stopped")[0]["step"]
    run.person.run("rm", "-rf", f"{run.place}/sluice-runs/run/checkpoints")
    run.start_now()
    run.until(lambda: len(run.events("ready")) == 2)
    run.touch("enough")
    assert run.ended() == ("COMPLETED", "0")
    assert run.events("restored")[0]["step"] == stopped == froms(run)[1]


def test_a_remote_that_refuses_harms_nothing(run: Run) -> None:
    run.script().submit(checkpoint_hours="0.0003", upload_to="/proc/no/such/place")
    run.until(lambda: run.events("upload_failed"))
    run.touch("enough")
    assert run.ended() == ("COMPLETED", "0")


def test_a_full_disk_costs_a_save_and_not_the_run(run: Run) -> None:
    """Of the checkpoints alone: 64 KiB of space, which the ballast does not fit into."""
    small = f"{run.place}/small"
    run.person.run("mkdir", small)
    run.script(ballast=500_000).submit(checkpoint_hours="0.0003", checkpoint_dir="small")
    cluster = run.person.cluster
    cluster.run(["mount", "-t", "tmpfs", "-o", f"size=64k,uid={uid(run)}", "none", small])
    try:
        run.until(lambda: run.events("save_failed"))
        before = run.steps()
        run.until(lambda: run.steps() > before + 10)
        run.touch("enough")
        assert run.ended() == ("COMPLETED", "0")
        assert not [name for name in cluster.run(["ls", small]).stdout.split() if "step" in name]
    finally:
        cluster.run(["umount", small])


def uid(run: Run) -> str:
    return run.person.run("id", "-u").strip()


def test_one_element_that_goes_back_leaves_the_others_alone(run: Run) -> None:
    run.script()
    run.submit(options=("--array=0-2", f"--output={HOME}/%x-%A_%a.out"))
    array = run.job

    def ready(task: int) -> list[dict[str, Any]]:
        return run.events("ready", f"run_{task}")

    run.until(lambda: all(ready(task) for task in range(3)), 60)
    run.person.run("scancel", "--batch", "--signal=USR1", f"{array}_2")
    run.until(lambda: run.events("stopped", "run_2"))
    run.until(lambda: run.person.show_element(array, 2)["JobState"] == "PENDING")
    assert [run.person.show_element(array, task)["JobState"] for task in (0, 1)] == ["RUNNING"] * 2
    run.person.cluster.run(["scontrol", "update", f"JobId={array}_2", "StartTime=now"])
    run.until(lambda: len(ready(2)) == 2)
    assert [len(ready(task)) for task in (0, 1)] == [1, 1]
    run.touch("enough")
    run.until(lambda: run.exists("sluice-runs/run_2/DONE"))


def test_two_jobs_on_one_node_keep_apart(run: Run) -> None:
    run.script()
    first = run.submit(spec=replace(ONE, partition="debug"), run_name="a").job
    second = run.submit(spec=replace(ONE, partition="debug"), run_name="b").job
    run.until(lambda: run.events("ready", "a") and run.events("ready", "b"))
    devices = {run.person.show(job)["JobState"] for job in (first, second)}
    assert devices == {"RUNNING"}
    run.person.run("scancel", "--batch", "--signal=USR1", str(second))
    run.until(lambda: run.events("stopped", "b"))
    assert not run.events("stopped", "a")
    run.touch("enough")
    run.person.ended(first, 60)
    assert run.exists("sluice-runs/a/DONE")


def test_two_jobs_of_one_run_name_do_not_write_into_each_other(run: Run) -> None:
    first = run.script().submit().job
    run.until_training()
    run.submit()
    assert run.ended()[0] == "FAILED"
    assert f"{first}" in run.output()
    run.person.run("scancel", str(first))
    run.person.ended(first, 60)


def test_a_cancelled_run_does_not_come_back(run: Run) -> None:
    run.script().submit()
    run.until_training()
    run.person.run("scancel", str(run.job))
    assert run.ended()[0] == "CANCELLED"
    time.sleep(2)
    assert run.person.show(run.job)["JobState"] == "CANCELLED"


@pytest.mark.parametrize(
    ("text", "code", "word"),
    [
        (None, "2", "train.py"),
        ("import sluice_train\nsluice_train.start()\n", "77", "done"),
        ("raise SystemExit(9)\n", "9", "9"),
        (WRONG_WORLD, "1", "given 4 ranks, and 1 met"),
    ],
    ids=["no-script", "no-done", "fails", "wrong-world"],
)
def test_a_run_that_cannot_be_called_done_fails(
    run: Run, text: str | None, code: str, word: str
) -> None:
    if text is not None:
        run.script(text)
    run.submit()
    assert run.ended() == ("FAILED", code)
    assert word in run.output()


def test_one_that_ignores_the_request_is_ended_in_time(run: Run) -> None:
    ignores = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    run.script(ignores + "open('here', 'w')\ntime.sleep(600)\n")
    run.submit(spec=replace(ONE, signal="B:USR1@10"))
    run.until(lambda: run.exists("here"))
    run.person.run("scancel", "--batch", "--signal=USR1", str(run.job))
    assert run.ended() == ("FAILED", "76")


def test_a_program_that_saves_at_term_is_asked_by_it_and_goes_back(run: Run) -> None:
    """Without the library: what it saved is recognised as the Trainer's."""
    run.script(SAVES_AT_TERM).submit(stop_with="term")
    run.until(lambda: run.exists("here"))
    run.person.run("scancel", "--batch", "--signal=USR1", str(run.job))
    run.until(lambda: run.person.show(run.job)["JobState"] == "PENDING")
    assert (run.events("end")[0]["action"], run.events("end")[0]["step"]) == ("requeue", 7)


SAVES_AT_TERM = """\
import os, pathlib, signal, sys, time
def save(*_):
    time.sleep(2)
    folder = pathlib.Path(os.environ["SLUICE_CHECKPOINT_DIR"], "checkpoint-7")
    folder.mkdir(parents=True)
    (folder / "rng_state.pth").write_text("x")
    (folder / "trainer_state.json").write_text('{"global_step": 7}')
    sys.exit(1)
signal.signal(signal.SIGTERM, save)
open("here", "w")
time.sleep(600)
"""


def test_a_smoke_job_saves_loads_and_says_so(run: Run) -> None:
    run.script().submit(smoke=True)
    assert run.ended() == ("COMPLETED", "0")
    verdict = run.events("smoke")[0]
    assert (verdict["ok"], verdict["loaded"], verdict["world"]) == (True, True, 1)
    assert verdict["save_bytes"] > 0
    assert verdict["peak_bytes"] > 0


def test_a_smoke_job_of_a_script_that_cannot_load_fails(run: Run) -> None:
    run.script(TRAIN.replace('"step").read_text', '"gone").read_text')).submit(smoke=True)
    assert run.ended() == ("FAILED", "70")
    verdict = run.events("smoke")[0]
    assert (verdict["ok"], verdict["loaded"]) == (False, False)


def test_a_preempted_run_that_is_given_back_waits_for_slurm(run: Run) -> None:
    """Slurm looks every 30 s whether a grace time is over."""
    whole = replace(ONE, partition="debug", gpus_per_node=2, gpu_type="a100")
    run.script().submit(spec=replace(whole, qos="spot"), on_preempt="wait")
    run.until_training()
    run.person.submit("command", replace(whole, qos="urgent"), command="sleep 1")
    run.until(lambda: run.person.show(run.job)["JobState"] == "PENDING", 90)
    asked = ("sacct", "--duplicates", "-X", "-n", "-P", "-o", "State", "-j", str(run.job))
    run.until(lambda: "PREEMPTED" in run.person.run(*asked).split("\n")[0])
    run.start_now()
    run.until_training(2)
    run.touch("enough")
    assert run.ended() == ("COMPLETED", "0")


def test_an_environment_that_is_not_there_says_so(run: Run) -> None:
    title = Text("", "")
    gone = Environment("gone", title, EnvironmentKind.VENV, path="/opt/envs/gone")
    run.script().submit(environment=gone)
    assert run.ended() == ("FAILED", "78")
    assert "/opt/envs/gone" in run.output()


@pytest.mark.parametrize("place", ["/home/no-such-data", HOME], ids=["missing", "writable"])
def test_datasets_must_be_there_and_read_only(run: Run, place: str) -> None:
    run.script().submit(datasets=place)
    state, code = run.ended()
    assert state == "FAILED"
    assert code not in {"0", "1", "2"}
    assert place in run.output()


def test_a_dataset_that_may_only_be_read_is_taken(run: Run) -> None:
    run.script("import os\nprint('sees', os.environ['SLUICE_DATASETS'])\n").submit(datasets="/usr")
    assert run.ended() == ("COMPLETED", "0")
    assert "sees /usr" in run.output()


def test_the_program_gets_exactly_the_words_that_were_typed(run: Run) -> None:
    run.script("import sys, json\nprint('words', json.dumps(sys.argv[1:]))\n")
    typed = """'two words' "it's" '$(id)' '`id`' -- -x '*' '' 'a;b' --c='d e'"""
    run.submit(arguments=typed)
    assert run.ended() == ("COMPLETED", "0")
    words = json.loads(re.findall(r"^words (.*)$", run.output(), re.MULTILINE)[0])
    assert words == ["two words", "it's", "$(id)", "`id`", "--", "-x", "*", "", "a;b", "--c=d e"]


def test_a_script_without_the_library_gets_its_checkpoint_by_an_option(run: Run) -> None:
    own = "import sys\nprint('words', sys.argv[1:], flush=True)\n"
    run.script(own)
    newest = f"{run.place}/sluice-runs/run/checkpoints/checkpoint-7"
    run.person.run("mkdir", "-p", newest)
    state = '{"global_step": 7}'
    run.person.run("sh", "-c", 'cat > "$1"', "sh", f"{newest}/trainer_state.json", stdin=state)
    run.person.run("sh", "-c", 'cat > "$1"', "sh", f"{newest}/rng_state.pth", stdin="x")
    run.submit(resume_option="--resume_from_checkpoint")
    assert run.ended() == ("COMPLETED", "0")
    assert f"words ['--resume_from_checkpoint', '{newest}']" in run.output()


def test_without_a_kit_a_job_runs_all_the_same(run: Run) -> None:
    run.script("print('ran')\n").submit(kit="/nowhere")
    assert run.ended() == ("COMPLETED", "0")
    assert "no node kit" in run.output()
    assert "ran" in run.output()
