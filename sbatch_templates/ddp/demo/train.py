"""A small real torch.distributed run: nccl where there is a GPU for each process, gloo elsewhere.

torchrun --standalone --nproc-per-node 2 train.py --steps 20

It saves and stops when it is asked to, and goes on from its newest checkpoint.
"""

import argparse
import gc
import os
import socket
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import sluice_train

BATCH = 192  # samples of a step, of all ranks together
RATE = 0.01


def main() -> None:
    options = arguments()
    device = join()
    run = sluice_train.start(model_params=sum(p.numel() for p in network().parameters()))
    rank, world = dist.get_rank(), dist.get_world_size()
    say(f"rank {rank} of {world} on {node()}")
    check_sum(device)
    loss = train(run, device, options.steps, options.pause)
    check_equal(loss)
    if rank == 0 and not run.stopping:
        say(f"DONE {options.steps} steps, {world} ranks, loss {loss.item():.6f}")
    run.finish()
    gc.collect()  # gloo's threads must end before the interpreter does (pytorch#179291)
    dist.barrier()
    dist.destroy_process_group()


def say(line: str) -> None:
    """One write a line: `print` makes two, and another rank's line would come between them."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train a tiny model with every process there is.")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds to sleep in each step")
    return parser.parse_args()


def join() -> torch.device:
    """Enter the process group, and take this process's own card where each has one."""
    local, on_node = int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
    if torch.cuda.is_available() and torch.cuda.device_count() >= on_node:
        torch.cuda.set_device(local)
        dist.init_process_group("nccl")
        return torch.device("cuda", local)
    dist.init_process_group("gloo")
    return torch.device("cpu")


def node() -> str:
    return os.environ.get("SLURMD_NODENAME") or socket.gethostname()


def check_sum(device: torch.device) -> None:
    """Every rank must really be in the group: the sum of all ranks is known."""
    total = torch.tensor([dist.get_rank()], dtype=torch.int64, device=device)
    dist.all_reduce(total)
    world = dist.get_world_size()
    if total.item() != world * (world - 1) // 2:
        sys.exit(f"all_reduce gave {total.item()}")


def network() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 4))


def samples(step: int, device: torch.device) -> torch.Tensor:
    """This rank's part of a batch that the step alone decides: a resumed run sees the same."""
    torch.manual_seed(step)
    return torch.randn(BATCH, 16)[dist.get_rank() :: dist.get_world_size()].to(device)


def train(run: sluice_train.Run, device: torch.device, steps: int, pause: float) -> torch.Tensor:
    """Fit a fixed map. Returns the mean loss of all ranks at the last step."""
    model = DistributedDataParallel(network().to(device))
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    if run.resume_path:
        load(Path(run.resume_path), model, optimizer)
    loss = torch.zeros((), device=device)
    for step in run.steps(steps):
        inputs = samples(step, device)
        loss = nn.functional.mse_loss(model(inputs), inputs[:, :4].sin())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if dist.get_rank() == 0 and (step % 5 == 0 or step == steps):
            say(f"step {step} of {steps}, loss {loss.item():.4f}")
        time.sleep(pause)
        if run.step(step, loss=loss, samples=BATCH):
            with run.saving(step) as folder:
                save(folder, model, optimizer)
    mean = loss.detach().clone()
    dist.all_reduce(mean)
    return mean / dist.get_world_size()


def save(folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """All ranks hold the same: the first one writes it."""
    if dist.get_rank() == 0:
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save(state, folder / "state.pt")


def load(folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """The model and the optimizer are as they were after the step that was saved."""
    state = torch.load(folder / "state.pt", map_location="cpu")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])


def check_equal(loss: torch.Tensor) -> None:
    lowest, highest = loss.clone(), loss.clone()
    dist.all_reduce(lowest, dist.ReduceOp.MIN)
    dist.all_reduce(highest, dist.ReduceOp.MAX)
    if lowest.item() != highest.item():
        sys.exit("the ranks do not agree on the loss")


if __name__ == "__main__":
    main()
