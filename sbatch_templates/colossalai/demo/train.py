"""A small run of Colossal-AI with the plugin that the job's template wrote down.

SLUICE_COLOSSALAI_CONFIG=colossalai.json torchrun --nproc-per-node 2 train.py --steps 20

It saves and stops when it is asked to, and goes on from its newest checkpoint. Gemini and ZeRO
want cards: `--cpu` trains with plain data parallelism instead, to try all the rest.
"""

import argparse
import gc
import json
import os
import sys
import time
from pathlib import Path

import colossalai
import torch
import torch.distributed as dist
from colossalai.accelerator import get_accelerator
from colossalai.booster import Booster, plugin
from colossalai.nn.optimizer import HybridAdam
from torch import nn

import sluice_train

BATCH = 192  # samples of a step, of all ranks together
WIDTH = 64
BLOCKS = 4
RATE = 0.003


def main() -> None:
    options = arguments()
    colossalai.launch_from_torch(backend="gloo" if options.cpu else "nccl")
    booster = Booster(plugin=plugin.TorchDDPPlugin() if options.cpu else chosen())
    model, optimizer = boosted(booster, cpu=options.cpu)
    run = sluice_train.start()
    rank, world = dist.get_rank(), dist.get_world_size()
    print(f"rank {rank} of {world}, {type(booster.plugin).__name__}", flush=True)
    if run.resume_path:
        booster.load_model(model, f"{run.resume_path}/model")
        booster.load_optimizer(optimizer, f"{run.resume_path}/optimizer")
    loss = train(run, booster, model, optimizer, options)
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
    parser = argparse.ArgumentParser(description="Train a tiny model with Colossal-AI.")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds to sleep in each step")
    parser.add_argument("--cpu", action="store_true", help="on the CPU, with plain DDP")
    return parser.parse_args()


def chosen() -> plugin.Plugin:
    """The plugin of the template: Gemini, or ZeRO of the stage that was asked for."""
    config = json.loads(Path(os.environ["SLUICE_COLOSSALAI_CONFIG"]).read_text())
    return getattr(plugin, config["plugin"])(**config["options"])


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return values + self.down(nn.functional.gelu(self.up(values)))


def boosted(booster: Booster, *, cpu: bool) -> tuple[nn.Module, torch.optim.Optimizer]:
    """HybridAdam works on the card and in host memory; on a CPU alone it does not."""
    torch.manual_seed(1)
    blocks = [Block() for _ in range(BLOCKS)]
    model = nn.Sequential(nn.Linear(16, WIDTH), *blocks, nn.Linear(WIDTH, 4))
    kind = torch.optim.Adam if cpu else HybridAdam
    optimizer = kind(model.parameters(), lr=RATE)
    model, optimizer, *_ = booster.boost(model, optimizer)
    return model, optimizer


def train(
    run: sluice_train.Run,
    booster: Booster,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    options: argparse.Namespace,
) -> torch.Tensor:
    """Fit a fixed map. Returns this rank's last loss."""
    device = get_accelerator().get_current_device()
    loss = torch.zeros((), device=device)
    for step in run.steps(options.steps):
        torch.manual_seed(step)  # the step alone decides the batch: a resumed run sees the same
        inputs = torch.randn(BATCH, 16)[dist.get_rank() :: dist.get_world_size()].to(device)
        loss = nn.functional.mse_loss(model(inputs).float(), inputs[:, :4].sin())
        booster.backward(loss, optimizer)
        optimizer.step()
        optimizer.zero_grad()
        if dist.get_rank() == 0 and (step % 5 == 0 or step == options.steps):
            print(f"step {step} of {options.steps}, loss {loss.item():.4f}", flush=True)
        time.sleep(options.pause)
        if run.step(step, loss=loss, samples=BATCH):
            with run.saving(step) as folder:
                # In shards; on a CPU in one file, since it loads no optimizer's shards there.
                shard = not options.cpu
                booster.save_model(model, f"{folder}/model", shard=shard)
                booster.save_optimizer(optimizer, f"{folder}/optimizer", shard=shard)
    return loss.detach().clone()


if __name__ == "__main__":
    main()
