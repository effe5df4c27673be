"""Where a job's run folder is (docs/engineering/training.md): the portal's half of the rule that
the prologue of the templates follows on the nodes."""

import re

FOLDER = "sluice-runs"
EVENTS, METRICS = "events.jsonl", "metrics.jsonl"
OUTPUT = ":output"  # not in the folder: what stands for the job's output file among the files read
# A node's name becomes a part of a path: what is no host name is no file of ours.
_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}", re.ASCII)
_RUN = re.compile(r"[^/\0\r\n]{1,255}")


def job_key(slurm_id: int, array_job_id: int | None, array_task: int | None) -> str:
    """What a job calls itself (SLUICE_JOB): `123`, or `120_3` for an element of an array."""
    if array_job_id is None or array_task is None:
        return str(slurm_id)
    return f"{array_job_id}_{array_task}"


def run_of(typed: str | None, *, job_name: str, key: str, array_task: int | None) -> str | None:
    """The run's name: the one that was typed (an element of an array adds its task), else the
    job's name and key. None for what cannot be one folder's name."""
    run = f"{job_name.replace('/', '-')}-{key}"
    if typed:
        run = typed if array_task is None else f"{typed}_{array_task}"
    return run if _RUN.fullmatch(run) and run not in {".", ".."} else None


def run_folder(working_directory: str, run: str) -> str:
    return f"{working_directory.rstrip('/')}/{FOLDER}/{run}"


def telemetry(node: str) -> str | None:
    """The file of a node within the run folder; None for what is no node's name."""
    return f"telemetry/{node}.jsonl" if _NODE.fullmatch(node) else None


def node_of(file: str) -> str | None:
    """The other way round; None for the files that are no node's."""
    folder, _, name = file.partition("/")
    return name.removesuffix(".jsonl") if folder == "telemetry" else None
