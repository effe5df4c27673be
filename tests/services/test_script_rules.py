"""The rules of launching, on the text of every shipped template in every shape and environment.

What a rule does to a running job is tested on a real cluster (tests/slurm); a test cluster binds
no cores and has one card order, so some faults of a script would not show there at all.
"""

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.testing.script_cases import TEMPLATES, Case, cases, rendered

SCRIPTS = {case: rendered(case) for case in cases()}
# Applications are no runs that are saved and gone on with: they have rules of their own.
APPS = {case: text for case, text in SCRIPTS.items() if TEMPLATES[case.template].manifest.app}
RUNS = {case: text for case, text in SCRIPTS.items() if case not in APPS}
STEP = re.compile(r"bash -c '(.*?)(?<!\\)' (?:program|torchrun) ", re.DOTALL)


def starts_torchrun(text: str) -> bool:
    return "torchrun_on_nodes()" in text


def commands(text: str) -> list[str]:
    """Whole commands: continued lines joined, without comments."""
    lines = text.replace("\\\n", " ").split("\n")
    return [line.strip() for line in lines if not line.strip().startswith("#")]


def rule_01_one_task_a_node(case: Case, text: str) -> None:
    assert "\n#SBATCH --ntasks-per-node=1\n" in text
    assert f"\n#SBATCH --nodes={case.nodes}\n" in text
    assert re.search(r"\n#SBATCH --gpus-per-node=a100:[1-9]\n", text)
    assert re.search(r"\n#SBATCH --cpus-per-task=[1-9]", text)
    assert "--ntasks=" not in text.replace("--nodes=1 --ntasks=1", "")


def rule_02_no_gpus_per_task(_case: Case, text: str) -> None:
    assert "gpus-per-task" not in text
    assert "--gpu-bind" not in text


def rule_03_cpus_are_told_to_each_step(_case: Case, text: str) -> None:
    told = text.index("\nexport SRUN_CPUS_PER_TASK=")
    assert all(told < found.start() for found in re.finditer(r"\bsrun -", text))


def rule_04_what_differs_by_node_is_worked_out_there(_case: Case, text: str) -> None:
    outside = STEP.sub("", text)
    assert STEP.search(text)
    assert "SLURM_NODEID" not in outside
    assert "SLURMD_NODENAME" not in outside


def rule_05_a_meeting_place_of_its_own(_case: Case, text: str) -> None:
    assert not re.search(r"\b29[45]00\b", text)
    if not starts_torchrun(text):
        return
    assert "--standalone" in text
    assert "--rdzv-backend=c10d" in text
    assert '--rdzv-id="$SLUICE_JOB.$SLUICE_RESTART"' in text
    assert "is_host=$((SLURM_NODEID == 0))" in text
    assert re.search(r"HEAD_PORT=\$\(\(\d+ \+ SLURM_JOB_ID % \d+\)\)", text)


def rule_06_no_restarts_inside_the_allocation(_case: Case, text: str) -> None:
    if starts_torchrun(text):
        assert "--max-restarts=0" in text
        assert "\nexport TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1" in text


def rule_07_a_step_runs_in_the_background_and_is_waited_for(_case: Case, text: str) -> None:
    steps = [line for line in commands(text) if re.match(r"(\w+=\S+ )*srun ", line)]
    assert steps
    assert all(line.endswith("&") for line in steps)
    assert not re.search(r"\|\s*tee\b", text)
    assert 'wait "$STEP"' in text
    assert "while :; do" in text


def rule_08_the_signal_asks_by_a_file(_case: Case, text: str) -> None:
    assert re.search(r"\n#SBATCH --signal=B:USR1@[1-9][0-9]*\n", text)
    assert re.search(r"\ntrap '[^']*USR1' USR1\n", text)
    assert '>"$SLUICE_RUN_DIR/stop"' in text
    assert not re.search(r"kill -(?:s )?(?:SIG)?USR", text)


def rule_09_requeue_is_bounded_and_the_script_ends_there(_case: Case, text: str) -> None:
    assert "\n#SBATCH --requeue\n" in text
    assert "\n#SBATCH --open-mode=append\n" in text
    assert re.search(r"\nexport SLUICE_MAX_RESTARTS=\d+\n", text)
    requeues = [
        line for line in commands(text) if re.match(r"scontrol (requeue|\"\$ACTION\")", line)
    ]
    assert requeues
    assert all(line.endswith("&& exit 0") for line in requeues)


def rule_10_an_element_is_requeued_by_its_own_name(case: Case, text: str) -> None:
    assert "${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID:-}" in text
    assert 'scontrol "$ACTION" "$SLUICE_JOB"' in text
    assert not re.search(r'requeue\w* "?\$\{?SLURM_JOB_ID', text)
    assert ("\n#SBATCH --array=" in text) == (case.template == "sweep")


def rule_11_marks_tell_success_not_the_exit_code(_case: Case, text: str) -> None:
    assert 'kit finish --code "$CODE" --signal "$STOP"' in text
    assert "preempted: waiting to be put back into the queue" in text


def rule_12_the_checkpoint_is_chosen_once_in_the_batch_script(_case: Case, text: str) -> None:
    assert "SLUICE_RESUME=$(kit prepare" in text
    assert "prepare" not in "".join(STEP.findall(text))
    assert "\nexport SLUICE_CHECKPOINT_DIR=" in text
    assert re.search(r"\nexport SLUICE_CHECKPOINT_KEEP=[1-9]", text)


def rule_13_nothing_is_synced_away(_case: Case, text: str) -> None:
    assert not re.search(r"rclone sync|rsync .*--delete", text)
    assert "\nexport SLUICE_UPLOAD=" in text


def rule_14_the_size_of_the_world_is_told(case: Case, text: str) -> None:
    if starts_torchrun(text):
        assert f"\nexport NPROC_PER_NODE={case.count}\n" in text
        assert "\nexport EXPECT_WORLD=$((SLURM_NNODES * NPROC_PER_NODE))\n" in text


def rule_15_zero_is_converted_for_another_number_of_processes(case: Case, text: str) -> None:
    assert ("ds_to_universal" in text) == (case.template == "deepspeed-zero3")


def rule_16_the_order_of_cards_is_changed_in_the_step_alone(_case: Case, text: str) -> None:
    assert "\nexport CUDA_DEVICE_ORDER=PCI_BUS_ID" in text
    assert all("on_node" in step for step in STEP.findall(text))
    setting = [line for line in commands(text) if "CUDA_VISIBLE_DEVICES=" in line]
    assert setting == [
        'order=$(kit order) && [ -n "$order" ] && export CUDA_VISIBLE_DEVICES="$order"'
    ]


def rule_17_threads_by_the_cores_of_a_process(_case: Case, text: str) -> None:
    if starts_torchrun(text):
        assert "THREADS=$((SRUN_CPUS_PER_TASK / NPROC_PER_NODE))" in text
        assert "\nexport OMP_NUM_THREADS=$((THREADS > 0 ? THREADS : 1))\n" in text


def rule_18_no_knobs_of_nccl(_case: Case, text: str) -> None:
    assert "NCCL_" not in text.replace("TORCH_NCCL_", "")


def rule_19_logs_of_each_job_and_rank_are_their_own(case: Case, text: str) -> None:
    number = "%A_%a" if case.template == "sweep" else "%j"
    assert f"\n#SBATCH --output=/home/member/runs/%x-{number}.out\n" in text
    if starts_torchrun(text):
        assert '--log-dir="$SLUICE_RUN_DIR/ranks"' in text


def rule_20_what_another_job_left_is_unset(_case: Case, text: str) -> None:
    first = next(line for line in commands(text) if line.startswith("unset "))
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        assert name in first.split()
    assert text.index("\nunset ") < text.index("\nexport ")


Rule = Callable[[Case, str], None]
RULES: list[Rule] = [found for name, found in sorted(globals().items()) if name.startswith("rule_")]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("template", sorted({case.template for case in RUNS}))
def test_a_rule_holds_in_every_shape_and_environment(rule: Rule, template: str) -> None:
    for case, text in RUNS.items():
        if case.template == template:
            try:
                rule(case, text)
            except AssertionError as error:
                raise AssertionError(f"{case}: {error}") from error


def test_there_is_a_function_for_each_of_the_twenty_rules() -> None:
    assert [rule.__name__[5:7] for rule in RULES] == [f"{n:02}" for n in range(1, 21)]


def test_an_image_is_entered_inside_the_step() -> None:
    for case, text in RUNS.items():
        inside = case.environment == "apptainer"
        assert ("\nIMAGE=/opt/images/torch.sif\n" in text) == inside
        assert ("\nBINDS=(/scratch:/scratch)\n" in text) == inside
        assert re.search(r'launch .*bash -c .*"\$\{ENTER\[@\]\}"', text, re.DOTALL)


def test_an_application_is_never_started_again_and_takes_the_warning_itself() -> None:
    for case, text in APPS.items():
        assert "\n#SBATCH --no-requeue\n" in text, case
        assert "\n#SBATCH --signal=B:USR1@600\n" in text, case
        assert text.index("\ntrap '' USR1\n") < text.index('\nexec "$SLUICE_PYTHON" -m '), case
        assert ("\nIMAGE=/opt/images/torch.sif\n" in text) == (case.environment == "apptainer")
        last = text.strip().split("\n")[-1]
        assert last.startswith('  -- "${ENTER[@]}" '), case


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """One file for each text that is another than the rest in more than a directive or the
    count of processes: those are no shell, and a number like any other."""
    folder = tmp_path_factory.mktemp("scripts")
    bodies: dict[str, Path] = {}
    for case, text in SCRIPTS.items():
        shell = re.sub(r"(?m)^#SBATCH .*$", "", text)
        path = folder / f"{case}.sh"
        bodies.setdefault(re.sub(r"NPROC_PER_NODE=\d+", "", shell), path)
    for path in bodies.values():
        path.write_text(SCRIPTS[next(c for c in SCRIPTS if str(c) == path.stem)])
    return [str(path) for path in bodies.values()]


def test_bash_reads_every_script() -> None:
    """bash reads one script a start, a few milliseconds each."""
    for case, text in SCRIPTS.items():
        done = subprocess.run(
            ["bash", "-n"], input=text, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, ""), case


@pytest.mark.skipif(not shutil.which("shellcheck"), reason="shellcheck is not installed")
def test_shellcheck_has_nothing_to_say(files: list[str]) -> None:
    """All files in one start: most of its time is the start."""
    done = subprocess.run(
        ["shellcheck", "--shell=bash", *files], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
