"""A small run of PyTorch's FSDP2: the model lies in parts on all ranks, and so do its checkpoints.

torchrun --standalone --nproc-per-node 2 train.py --steps 20 --async-save

It saves and stops when it is asked to, and goes on from its newest checkpoint, also with another
number of ranks. With nccl where there is a GPU for each process, gloo elsewhere.
"""

import argparse
import gc
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor

import sluice_train

BATCH = 192  # samples of a step, of all ranks together
WIDTH = 64
BLOCKS = 4


def main() -> None:
    options = arguments()
    device = join()
    model = sharded(device, bf16=options.bf16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)
    run = sluice_train.start(model_params=sum(p.numel() for p in model.parameters()))
    rank, world = dist.get_rank(), dist.get_world_size()
    print(f"rank {rank} of {world} holds {held(model)} parameters", flush=True)
    if run.resume_path:
        load(Path(run.resume_path), model, optimizer)
    loss = train(run, model, optimizer, device, options)
    dist.all_reduce(loss)
    if rank == 0 and not run.stopping:
        print(f"DONE {options.steps} steps, {world} ranks, loss {loss.item() / world:.6f}")
    run.finish()
    sys.stdout.flush()
    del model, optimizer
    gc.collect()  # gloo's threads must end before the interpreter does (pytorch#179291)
    dist.barrier()
    dist.destroy_process_group()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train a tiny model in parts on all ranks.")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds to sleep in each step")
    parser.add_argument("--async-save", action="store_true", help="write while training goes on")
    parser.add_argument("--bf16", action="store_true", help="compute in bf16")
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


class Block(nn.Module):
    """One of the parts that are gathered for their own forward and backward pass alone."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return values + self.down(nn.functional.gelu(self.up(values)))


def sharded(device: torch.device, *, bf16: bool) -> nn.Module:
    """The model, of which this rank holds a part."""
    torch.manual_seed(1)
    blocks = [Block() for _ in range(BLOCKS)]
    model = nn.Sequential(nn.Linear(16, WIDTH), *blocks, nn.Linear(WIDTH, 4)).to(device)
    mesh = init_device_mesh(device.type, (dist.get_world_size(),))
    kinds = {"param_dtype": torch.bfloat16, "reduce_dtype": torch.float32} if bf16 else {}
    precision = MixedPrecisionPolicy(**kinds)
    for block in blocks:
        fully_shard(block, mesh=mesh, mp_policy=precision)
    return fully_shard(model, mesh=mesh, mp_policy=precision)


def held(model: nn.Module) -> int:
    parts = [p.to_local() if isinstance(p, DTensor) else p for p in model.parameters()]
    return sum(part.numel() for part in parts)


def train(
    run: sluice_train.Run,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    device: torch.device,
    options: argparse.Namespace,
) -> torch.Tensor:
    """Fit a fixed map. Returns this rank's last loss."""
    # What is written beside the training talks among the ranks beside it too.
    beside = dist.new_group(backend="gloo") if options.async_save else None
    loss = torch.zeros((), device=device)
    for step in run.steps(options.steps):
        torch.manual_seed(step)  # the step alone decides the batch: a resumed run sees the same
        inputs = torch.randn(BATCH, 16)[dist.get_rank() :: dist.get_world_size()].to(device)
        loss = nn.functional.mse_loss(model(inputs).float(), inputs[:, :4].sin())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if dist.get_rank() == 0 and (step % 5 == 0 or step == options.steps):
            print(f"step {step} of {options.steps}, loss {loss.item():.4f}", flush=True)
        time.sleep(options.pause)
        if run.step(step, loss=loss, samples=BATCH):
            with run.saving(step) as folder:
                save(run, folder, model, optimizer, beside)
    return loss.detach().clone()


def save(
    run: sluice_train.Run,
    folder: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    beside: dist.ProcessGroup | None,
) -> None:
    """Every rank writes its part: at once, or from a copy while the training goes on."""
    weights, moments = get_state_dict(model, optimizer)
    state = {"model": weights, "optimizer": moments}
    if beside is not None:
        run.seal_after(dcp.async_save(state, checkpoint_id=folder, process_group=beside))
    else:
        dcp.save(state, checkpoint_id=folder)


def load(folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Each rank reads what is its part now."""
    weights, moments = get_state_dict(model, optimizer)
    state = {"model": weights, "optimizer": moments}
    dcp.load(state, checkpoint_id=folder)
    set_state_dict(
        model,
        optimizer,
        model_state_dict=state["model"],
        optim_state_dict=state["optimizer"],
    )


if __name__ == "__main__":
    main()
