"""A small run of DeepSpeed ZeRO, with the configuration that the job's template wrote.

SLUICE_DS_CONFIG=ds_config.json torchrun --standalone --nproc-per-node 2 train.py --steps 20

It saves and stops when it is asked to, and goes on from its newest checkpoint.
"""

import argparse
import gc
import json
import os
import shutil
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import deepspeed
import torch
import torch.distributed as dist
from torch import nn

import sluice_train

WIDTH = 64
BLOCKS = 4
RATE = 0.003


def main() -> None:
    options = arguments()
    config = json.loads(Path(os.environ["SLUICE_DS_CONFIG"]).read_text())
    engine = partitioned(config)
    run = sluice_train.start(model_params=sum(size(p) for p in engine.module.parameters()))
    rank, world = dist.get_rank(), dist.get_world_size()
    stage, offload = engine.zero_optimization_stage(), offloaded(config)
    print(f"rank {rank} of {world}, ZeRO-{stage}, in host memory: {offload}", flush=True)
    if run.resume_path:
        if not config["checkpoint"]["load_universal"]:
            run.require_same_world()
        engine.load_checkpoint(run.resume_path)
    loss = train(run, engine, options)
    dist.all_reduce(loss)
    if rank == 0 and not run.stopping:
        print(f"DONE {options.steps} steps, {world} ranks, loss {loss.item() / world:.6f}")
    run.finish()
    sys.stdout.flush()
    engine.destroy()
    gc.collect()  # gloo's threads must end before the interpreter does (pytorch#179291)
    dist.barrier()
    dist.destroy_process_group()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train a tiny model with DeepSpeed.")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds to sleep in each step")
    return parser.parse_args()


def partitioned(config: dict[str, Any]) -> deepspeed.DeepSpeedEngine:
    """The model and its optimizer in DeepSpeed's hands, and all ranks together."""
    # DeepSpeed 0.19 calls collectives by names that PyTorch 2.13 warns of, at each step.
    warnings.filterwarnings("ignore", category=FutureWarning, module="torch.distributed")
    if not torch.cuda.is_available() and shutil.which("g++") is None:
        # On a CPU it would compile a collective of its own, which needs a compiler: gloo has one.
        deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    deepspeed.init_distributed()
    torch.manual_seed(1)
    with deepspeed.zero.Init(
        config_dict_or_path=config, enabled=config["zero_optimization"]["stage"] == 3
    ):
        blocks = [Block() for _ in range(BLOCKS)]
        model = nn.Sequential(nn.Linear(16, WIDTH), *blocks, nn.Linear(WIDTH, 4))
    optimizer = adam(config)(model.parameters(), lr=RATE)
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=config)
    return engine


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return values + self.down(nn.functional.gelu(self.up(values)))


def adam(config: dict[str, Any]) -> type[torch.optim.Optimizer]:
    """DeepSpeed's own is the quick one in host memory, and is compiled at its first use."""
    if torch.cuda.is_available() and offloaded(config) != "nothing":
        return deepspeed.ops.adam.DeepSpeedCPUAdam
    return torch.optim.AdamW


def offloaded(config: dict[str, Any]) -> str:
    parts = {"offload_optimizer": "optimizer", "offload_param": "weights"}
    there = [name for key, name in parts.items() if key in config["zero_optimization"]]
    return " and ".join(there) or "nothing"


def size(parameter: nn.Parameter) -> int:
    """Of the whole: with ZeRO-3 a rank's own tensor is empty outside of its forward pass."""
    return int(getattr(parameter, "ds_numel", parameter.numel()))


def train(
    run: sluice_train.Run, engine: deepspeed.DeepSpeedEngine, options: argparse.Namespace
) -> torch.Tensor:
    """Fit a fixed map. Returns this rank's last loss."""
    device, kind = engine.device, next(engine.module.parameters()).dtype
    rank, world, batch = dist.get_rank(), dist.get_world_size(), engine.train_batch_size()
    loss = torch.zeros((), device=device)
    for step in run.steps(options.steps):
        torch.manual_seed(step)  # the step alone decides the batch: a resumed run sees the same
        # One step of the training is as many passes as gradients are gathered over.
        for inputs in torch.randn(batch, 16)[rank::world].split(micro_batch(engine)):
            given = inputs.to(device)
            loss = nn.functional.mse_loss(engine(given.to(kind)).float(), given[:, :4].sin())
            engine.backward(loss)
            engine.step()
        if rank == 0 and (step % 5 == 0 or step == options.steps):
            print(f"step {step} of {options.steps}, loss {loss.item():.4f}", flush=True)
        time.sleep(options.pause)
        if run.step(step, loss=loss, samples=batch):
            with run.saving(step) as folder:
                engine.save_checkpoint(str(folder), tag="zero")
    return loss.detach().clone()


def micro_batch(engine: deepspeed.DeepSpeedEngine) -> int:
    return int(engine.train_micro_batch_size_per_gpu())


if __name__ == "__main__":
    main()
