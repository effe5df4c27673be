"""A training of several ranks that uses the library, for test_library_ranks.py. Starts nothing.

usage: ranks_training.py SCENARIO TOTAL, in an environment such as torchrun makes.
"""

import gc
import json
import os
import signal
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import sluice_train

SECONDS_A_STEP = 0.05


def main(scenario: str, total: int) -> None:
    """Train `total` steps of a model with one number per rank of its own."""
    dist.init_process_group("gloo")
    run = sluice_train.start(model_params=9)
    torch.manual_seed(run.rank)
    model = DistributedDataParallel(torch.nn.Linear(8, 1))
    if run.resume_path:
        load(run, model)
    for step in run.steps(total):
        one_step(model, step, run.rank)
        disturb(scenario, run, step)
        if run.step(step, loss=0.5, tokens=4):
            save(scenario, run, step, model)
    run.finish()
    part(model)


def one_step(model: DistributedDataParallel, step: int, rank: int) -> None:
    """Every rank waits for the slowest in the gradients, as in a real training."""
    time.sleep(SECONDS_A_STEP * (1 + rank % 2))
    model.zero_grad()
    model(torch.full((2, 8), float(step))).sum().backward()


def disturb(scenario: str, run: sluice_train.Run, step: int) -> None:
    """What happens to this rank at this step."""
    if scenario == "term-one" and step == 7 and run.rank == run.world - 1:
        os.kill(os.getpid(), signal.SIGTERM)
    if scenario == "die-in-save" and step == 12:
        Path(os.environ["SLUICE_RUN_DIR"], "stop").write_text("USR1")


def save(scenario: str, run: sluice_train.Run, step: int, model: DistributedDataParallel) -> None:
    """Each rank writes its part; the scenario says what goes wrong."""
    with run.saving(step) as folder:
        if scenario == "async":
            save_beside(run, folder, model)
            return
        if scenario == "full-on-one" and run.rank == 1 and not (folder.parent / "tried").exists():
            (folder.parent / "tried").write_text("")
            raise OSError(28, "No space left on device")
        torch.save(model.module.state_dict(), folder / f"rank-{run.rank}.pt")
        (folder / f"step-{run.rank}").write_text(str(step))
        if scenario == "die-in-save" and run.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)


def save_beside(run: sluice_train.Run, folder: Path, model: DistributedDataParallel) -> None:
    """With torch's own asynchronous save."""
    import torch.distributed.checkpoint as dcp

    state = {"model": model.module.state_dict()}
    # A group of its own: its thread must not talk in between of the gradients' collectives.
    run.seal_after(dcp.async_save(state, checkpoint_id=folder, process_group=dist.new_group()))


def load(run: sluice_train.Run, model: DistributedDataParallel) -> None:
    """As it was saved, and a line that says so."""
    folder = Path(run.resume_path or "")
    if (folder / ".metadata").exists():
        import torch.distributed.checkpoint as dcp

        dcp.load({"model": model.module.state_dict()}, checkpoint_id=folder)
    else:
        part_of_it = folder / f"rank-{run.rank}.pt"
        model.module.load_state_dict(torch.load(part_of_it, weights_only=True))
    print(json.dumps({"rank": run.rank, "loaded": run.resume_step}), flush=True)


def part(model: DistributedDataParallel) -> None:
    """Gloo's threads sometimes abort a process that ends while they live."""
    del model
    gc.collect()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
