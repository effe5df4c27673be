"""Rendered scripts run by bash, with Slurm's commands and the image's runtime in their place.

What Slurm does is tested on a real cluster (tests/slurm). Here is what that one cannot show: nodes
without an address, an image, the words of each node.
"""

import json
import os
import shutil
import socket
import stat
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.core.answers import clean_all
from gateway.core.manifest import Text
from gateway.services.environments import Environment, EnvironmentKind
from gateway.services.templates import Catalogue, render
from gateway.testing.template_samples import FOLDER, SPEC

KIT = Path(__file__).resolve().parents[2] / "contrib" / "sluice_train"

# Options fall away up to the program; the sidecar's step does nothing.
SRUN = """\
case " $* " in *" --overlap "*) exit 0 ;; esac
while case "$1" in -*) true ;; *) false ;; esac; do shift; done
export SLURM_NODEID="${ON_NODE:-0}" SLURMD_NODENAME="n$((${ON_NODE:-0} + 1))"
exec "$@"
"""
SCONTROL = """\
case "$1 $2" in
"show hostnames")
  [ -z "${WARNED_EARLY:-}" ] || kill -USR1 "$(cat "$HOME/shell")"
  echo n1
  ;;
"show node") [ -n "${NO_ADDRESS:-}" ] || echo "NodeName=$4 NodeAddr=10.0.0.${4#n} State=IDLE" ;;
esac
"""
TELL = """\
import json, os, sys
names = ("CUDA_VISIBLE_DEVICES", "EXPECT_WORLD", "OMP_NUM_THREADS", "SLUICE_RESUME", "RANK")
told = {name: os.environ.get(name) for name in names}
print("told", json.dumps({"words": sys.argv[1:], **told}), flush=True)
"""
SCANCEL = """\
echo "$*" >>"$HOME/scancel"
kill -TERM "$(cat "$HOME/program")"
"""
# Saves when it gets TERM, as frameworks' own scripts do, and hears of nothing else.
SAVES_AT_TERM = """\
import os, pathlib, signal, sys, time
def save(*_):
    folder = pathlib.Path(os.environ["SLUICE_CHECKPOINT_DIR"], "checkpoint-7")
    folder.mkdir(parents=True)
    (folder / "rng_state.pth").write_text("x")
    (folder / "trainer_state.json").write_text('{"global_step": 7}')
    sys.exit(1)
signal.signal(signal.SIGTERM, save)
pathlib.Path(os.environ["HOME"], "program").write_text(str(os.getpid()))
if "WARN" in os.environ:
    os.kill(int(pathlib.Path(os.environ["HOME"], "shell").read_text()), signal.SIGUSR1)
time.sleep(50)
"""
APPTAINER = """\
printf 'image %s\\n' "$*"
while [ "${1##*.}" != sif ]; do shift; done
shift
exec "$@"
"""


Begin = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def begin(tmp_path: Path) -> Begin:
    """Runs a template's script in `tmp_path` as Slurm would on its first node."""
    programs = tmp_path / "bin"
    programs.mkdir()
    tell = tmp_path / "tell.py"
    tell.write_text(TELL)
    texts = {"srun": SRUN, "scontrol": SCONTROL, "scancel": SCANCEL, "apptainer": APPTAINER}
    texts["torchrun"] = f'exec python3 {tell} "$@"\n'
    for name, text in texts.items():
        program = programs / name
        program.write_text(f"#!/bin/bash\n{text}")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)

    def run(
        template: str,
        *,
        environment: Environment | None = None,
        nodes: int = 1,
        kit: Path = KIT,
        signal: str | None = SPEC.signal,
        variables: dict[str, str] | None = None,
        **typed: str,
    ) -> "subprocess.CompletedProcess[str]":
        found = Catalogue.load((FOLDER,), kit=str(kit)).get(template)
        assert found is not None
        defaults = {field.name: field.default for field in found.manifest.fields}
        values, refused = clean_all(found.manifest, defaults | typed)
        assert refused == ()
        spec = replace(SPEC, nodes=nodes, working_directory=str(tmp_path), signal=signal)
        script = render(found, spec=spec, values=values, environment=environment, nproc_per_node=2)
        given = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "HOME": str(tmp_path),
            "SLURM_JOB_ID": "7",
            "SLURM_JOB_NAME": "name",
            "SLURM_JOB_NODELIST": "n1",
            "SLURM_NNODES": str(nodes),
            "SLURM_CPUS_PER_TASK": "8",
            "CUDA_VISIBLE_DEVICES": "0,1",
            **(variables or {}),
        }
        return subprocess.run(
            ["bash", "-c", f'echo "$$" >"$HOME/shell"\n{script}'],
            cwd=tmp_path,
            env=given,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


def take(port: int) -> socket.socket:
    """Listen there, as another job on this node would."""
    taken = socket.socket()
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    taken.bind(("127.0.0.1", port))
    taken.listen()
    return taken


def told(done: "subprocess.CompletedProcess[str]") -> dict[str, Any]:
    lines = [line for line in done.stdout.splitlines() if line.startswith("told ")]
    assert len(lines) == 1, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(lines[0].removeprefix("told "))
    return found


def test_a_node_without_an_address_ends_the_job_in_words(begin: Begin) -> None:
    done = begin("ddp", nodes=2, variables={"NO_ADDRESS": "1"})
    assert done.returncode == 68
    assert "no address is known for n1" in done.stderr


@pytest.mark.parametrize("node", [0, 1])
def test_each_node_works_out_its_own_part(begin: Begin, node: int) -> None:
    words = told(begin("ddp", nodes=2, variables={"ON_NODE": str(node)}))["words"]
    assert f"--local-addr=10.0.0.{node + 1}" in words
    assert f"--rdzv-conf=is_host={int(node == 0)}" in words
    assert "--rdzv-endpoint=10.0.0.1:20007" in words
    assert "--rdzv-id=7.0" in words
    assert "--max-restarts=0" in words


def test_a_port_that_another_job_has_is_left_to_it(begin: Begin) -> None:
    with take(20009):
        words = told(begin("ddp", nodes=2, variables={"SLURM_JOB_ID": "9"}))["words"]
    assert "--rdzv-endpoint=10.0.0.1:20010" in words


def test_one_node_stands_alone(begin: Begin) -> None:
    done = told(begin("ddp", arguments="--name 'two words'"))
    assert "--standalone" in done["words"]
    assert not [word for word in done["words"] if word.startswith("--rdzv")]
    assert done["words"][-3:] == ["train.py", "--name", "two words"]
    assert (done["EXPECT_WORLD"], done["OMP_NUM_THREADS"]) == ("2", "4")


def test_what_another_job_left_behind_does_not_get_in(begin: Begin) -> None:
    assert told(begin("ddp", variables={"RANK": "3", "TORCHELASTIC_RUN_ID": "x"}))["RANK"] is None


def test_an_image_holds_the_program_and_its_datasets(begin: Begin, tmp_path: Path) -> None:
    sif = tmp_path / "torch.sif"
    sif.touch()
    image = Environment("torch", Text("", ""), EnvironmentKind.APPTAINER, image=str(sif))
    typed = {"datasets": "/usr", "arguments": "--x 'a b'"}
    # Without the kit, which would look whether root may write there: it may.
    done = begin("ddp", environment=image, kit=tmp_path / "nowhere", **typed)
    assert told(done)["words"][-3:] == ["train.py", "--x", "a b"]
    line = next(line for line in done.stdout.splitlines() if line.startswith("image "))
    assert f"--bind {tmp_path} " in line
    assert "--bind /usr:/usr:ro" in line


def test_without_a_kit_the_program_runs_all_the_same(begin: Begin, tmp_path: Path) -> None:
    done = begin("single-gpu", kit=tmp_path / "nowhere", script="tell.py", arguments="a")
    assert told(done)["words"] == ["a"]
    assert "no node kit" in done.stderr
    assert done.returncode == 0


def test_a_run_that_is_done_is_not_done_again(begin: Begin, tmp_path: Path) -> None:
    folder = tmp_path / "sluice-runs" / "mine"
    folder.mkdir(parents=True)
    (folder / "DONE").write_text('{"step": 3}')
    done = begin("single-gpu", script="tell.py", run_name="mine")
    assert (done.returncode, "told" in done.stdout) == (0, False)


def went_back(done: "subprocess.CompletedProcess[str]", folder: Path) -> None:
    """The program was asked by TERM, saved, and the job puts itself back."""
    assert done.stdout.count("the run is asked to save and to stop") == 1
    assert (folder / "scancel").read_text() == "--signal=TERM 7\n"
    assert "sluice: the run saved and stopped: it goes on from there: requeue" in done.stderr
    assert done.returncode == 0


def test_a_program_that_saves_at_term_gets_it_through_slurm(begin: Begin, tmp_path: Path) -> None:
    """srun makes a KILL of its own TERM. The warning is long: nothing else ends the program."""
    (tmp_path / "saves.py").write_text(SAVES_AT_TERM)
    typed = {"script": "saves.py", "stop_with": "term"}
    went_back(begin("single-gpu", signal="B:USR1@300", variables={"WARN": "1"}, **typed), tmp_path)


def test_a_warning_before_the_step_has_its_end_too(begin: Begin, tmp_path: Path) -> None:
    """The program is not asked by a signal: TERM comes when half of the warning's time is over."""
    (tmp_path / "saves.py").write_text(SAVES_AT_TERM)
    torchrun = tmp_path / "bin" / "torchrun"
    torchrun.write_text(f"#!/bin/sh\nexec python3 {tmp_path}/saves.py\n")
    went_back(begin("ddp", signal="B:USR1@2", variables={"WARNED_EARLY": "1"}), tmp_path)


def test_where_the_last_word_fails_a_run_is_not_called_done(begin: Begin, tmp_path: Path) -> None:
    """The kit goes away while the program runs."""
    kit = tmp_path / "kit"
    shutil.copytree(KIT / "sluice_train", kit / "sluice_train")
    (tmp_path / "last.py").write_text(f"import shutil; shutil.rmtree('{kit}')\n")
    assert begin("single-gpu", kit=kit, script="last.py").returncode == 1
