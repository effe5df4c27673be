"""The rendered scripts, as files a person can read: a change of a template shows in the diff.

After a wanted change: SLUICE_UPDATE_GOLDEN=1 pytest tests/services/test_golden_scripts.py
"""

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.core.manifest import GpuRule, Text
from gateway.services.environments import NONE, Environment, EnvironmentKind
from gateway.services.templates import Catalogue, Template, render
from gateway.testing.template_samples import FOLDER, SPEC, values_for

GOLDEN = Path(__file__).parents[1] / "golden"
TEMPLATES = {found.name: found for found in Catalogue.load((FOLDER,)).all()}
VENV = Environment("torch", Text("", ""), EnvironmentKind.VENV, path="/opt/envs/torch")


def shapes(template: Template) -> list[tuple[int, int]]:
    """Nodes and processes (or chosen GPUs) that the template's ranges allow."""
    resources = template.manifest.resources
    chosen = resources.gpus is GpuRule.CHOSEN
    per_node = resources.gpus_per_node if chosen else resources.nproc_per_node
    return [
        (nodes, count)
        for nodes in (1, 2)
        for count in (1, 2, 4)
        if resources.nodes.min <= nodes <= resources.nodes.max
        and per_node.min <= count <= per_node.max
    ]


CASES = [(name, *shape) for name, template in TEMPLATES.items() for shape in shapes(template)]


def rendered(name: str, nodes: int, count: int, environment: Environment | None = VENV) -> str:
    template = TEMPLATES[name]
    resources = template.manifest.resources
    chosen = resources.gpus is GpuRule.CHOSEN
    processes = 1 if chosen else count
    spec = replace(
        SPEC,
        nodes=nodes,
        gpus_per_node=resources.gpus_for(processes, count),
        cpus_per_task=resources.cpus_for(processes),
        signal=template.manifest.sbatch.signal,
    )
    return render(
        template,
        spec=spec,
        values=values_for(template),
        environment=environment,
        nproc_per_node=processes,
    )


@pytest.mark.parametrize(("name", "nodes", "count"), CASES)
def test_the_script_is_as_it_was(name: str, nodes: int, count: int) -> None:
    path = GOLDEN / f"{name}-{nodes}x{count}.sbatch"
    text = rendered(name, nodes, count)
    if os.environ.get("SLUICE_UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("environment", [None, NONE, VENV])
def test_no_script_has_a_gap_of_several_lines(environment: Environment | None) -> None:
    for name, nodes, count in CASES:
        assert "\n\n\n" not in rendered(name, nodes, count, environment)


def test_there_is_no_stray_file() -> None:
    known = {f"{name}-{nodes}x{count}.sbatch" for name, nodes, count in CASES}
    assert {path.name for path in GOLDEN.glob("*.sbatch")} == known


@pytest.mark.parametrize(("name", "nodes", "count"), CASES)
@pytest.mark.parametrize("program", [("bash", "-n"), ("shellcheck", "-s", "bash", "-")])
def test_bash_and_shellcheck_have_nothing_to_say(
    name: str, nodes: int, count: int, program: tuple[str, ...]
) -> None:
    """A start of each program a script: they are the only judges."""
    if not shutil.which(program[0]):
        pytest.skip(f"{program[0]} is not installed")
    script = rendered(name, nodes, count)
    done = subprocess.run(program, input=script, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_rules_of_launching_are_kept() -> None:
    text = rendered("ddp", 2, 4)
    assert "#SBATCH --ntasks-per-node=1" in text
    assert "gpus-per-task" not in text
    assert "export SRUN_CPUS_PER_TASK=" in text
    assert '--rdzv-id="$SLURM_JOB_ID.${SLURM_RESTART_COUNT:-0}"' in text
    assert "is_host=$IS_HOST" in text
    assert "--standalone" in text
    assert "--max-restarts=0" in text
    assert "29500" not in text
    assert "29400" not in text
    assert "NCCL_" not in text
    assert "--kill-on-bad-exit=1" in text
    assert "#SBATCH --signal=B:USR1@120" in text
    assert "#SBATCH --open-mode=append" in text
    assert "export EXPECT_WORLD=$((SLURM_NNODES * NPROC_PER_NODE))" in text
