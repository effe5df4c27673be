"""A small real torch.distributed run: nccl where there is a GPU for each process, gloo elsewhere.

torchrun --standalone --nproc-per-node 2 train.py --steps 20
"""

import argparse
import gc
import os
import socket
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    options = arguments()
    device = join()
    rank, world = dist.get_rank(), dist.get_world_size()
    expected = int(os.environ.get("EXPECT_WORLD", world))
    if world != expected:
        sys.exit(f"{expected} ranks were asked for, {world} came")
    say(f"rank {rank} of {world} on {node()}")
    check_sum(device)
    loss = train(device, options.steps, options.pause)
    check_equal(loss)
    if rank == 0:
        say(f"DONE {options.steps} steps, {world} ranks, loss {loss.item():.4f}")
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


def train(device: torch.device, steps: int, pause: float) -> torch.Tensor:
    """Fit a random linear map, each rank on its own data. Returns the mean loss of all ranks."""
    torch.manual_seed(1)
    target = torch.randn(16, 4, device=device)
    model = DistributedDataParallel(nn.Linear(16, 4).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(100 + dist.get_rank())
    loss = torch.zeros((), device=device)
    for step in range(1, steps + 1):
        inputs = torch.randn(64, 16, device=device)
        loss = nn.functional.mse_loss(model(inputs), inputs @ target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if dist.get_rank() == 0 and (step % 5 == 0 or step == steps):
            say(f"step {step} of {steps}, loss {loss.item():.4f}")
        time.sleep(pause)
    mean = loss.detach().clone()
    dist.all_reduce(mean)
    return mean / dist.get_world_size()


def check_equal(loss: torch.Tensor) -> None:
    lowest, highest = loss.clone(), loss.clone()
    dist.all_reduce(lowest, dist.ReduceOp.MIN)
    dist.all_reduce(highest, dist.ReduceOp.MAX)
    if lowest.item() != highest.item():
        sys.exit("the ranks do not agree on the loss")


if __name__ == "__main__":
    main()
