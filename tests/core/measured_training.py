"""Trains small transformers on the processor and prints the peak of memory of each, in bytes.

    python measured_training.py STRATEGY RANK WORLD FOLDER '[{"layers": 4, …}, …]'

The transformer is the one of Korthikanti and others: dropout with masks of one byte, GELU, no
flash attention. Two micro-batches a step, so that gradients are there while activations are.
Strategies: single and ddp are PyTorch's; zero1 is DDP with ZeroRedundancyOptimizer; fsdp is
FSDP2's full shard of each block; zero2 and zero3 are DeepSpeed's, in bf16.
"""

import gc
import json
import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional

STEPS, MICRO = 2, 2


class Dropout(nn.Module):
    """As on a card, with a mask of one byte; the processor's own keeps one of the full width."""

    def forward(self, x):
        mask = torch.empty(x.shape, dtype=torch.bool, device=x.device).bernoulli_(0.1)
        return x.masked_fill(mask, 0.0) * (1 / 0.9)


class Block(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.before, self.after = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.qkv, self.out = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.up, self.down = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)
        self.drop = Dropout()

    def forward(self, x):
        x = x + self.drop(self.out(self._attend(self.before(x))))
        return x + self.drop(self.down(functional.gelu(self.up(self.after(x)))))

    def _attend(self, x):
        batch, length, hidden = x.shape
        shape = (batch, length, self.heads, hidden // self.heads)
        q, k, v = (part.view(shape).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        scores = functional.softmax((q * shape[-1] ** -0.5) @ k.transpose(-2, -1), dim=-1)
        return (self.drop(scores) @ v).transpose(1, 2).reshape(batch, length, hidden)


class Transformer(nn.Module):
    def __init__(self, *, layers, hidden, heads, vocab, sequence):
        super().__init__()
        self.words, self.places = nn.Embedding(vocab, hidden), nn.Embedding(sequence, hidden)
        self.blocks = nn.ModuleList(Block(hidden, heads) for _ in range(layers))

    def forward(self, tokens):
        x = self.words(tokens) + self.places.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = functional.linear(x, self.words.weight).float()
        return functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())


def train(strategy, shape, batch, *, steps=STEPS):
    model = Transformer(**shape)
    tokens = torch.randint(0, shape["vocab"], (batch, shape["sequence"]))
    if strategy in {"zero2", "zero3"}:
        return _train_deepspeed(strategy, model, tokens, steps)
    optimizer = None
    if strategy in {"ddp", "zero1"}:
        model = nn.parallel.DistributedDataParallel(model)
    if strategy == "fsdp":
        from torch.distributed.fsdp import fully_shard

        mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
        for block in model.blocks:
            fully_shard(block, mesh=mesh)
        fully_shard(model, mesh=mesh)
    if strategy == "zero1":
        from torch.distributed.optim import ZeroRedundancyOptimizer

        optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=1e-4)
    optimizer = optimizer or torch.optim.Adam(model.parameters(), lr=1e-4)
    for _ in range(steps):
        for _ in range(MICRO):
            model(tokens).backward()
        optimizer.step()
        optimizer.zero_grad()
    return None


def _train_deepspeed(strategy, model, tokens, steps):
    import deepspeed

    # On a processor it would compile a collective of its own; gloo has one.
    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False

    settings = {
        "train_micro_batch_size_per_gpu": tokens.shape[0],
        "gradient_accumulation_steps": MICRO,
        "bf16": {"enabled": True},
        "zero_force_ds_cpu_optimizer": False,
        "zero_allow_untested_optimizer": True,
        # As small beside the model as DeepSpeed's own are beside a large one.
        "zero_optimization": {
            "stage": int(strategy[-1]),
            "reduce_bucket_size": 1_000_000,
            "stage3_prefetch_bucket_size": 100_000,
            "stage3_max_live_parameters": 1_000_000,
            "stage3_max_reuse_distance": 1_000_000,
        },
    }
    # Fused as on a card: the plain one makes copies of the flat partition.
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=settings)
    forget_peak()  # of building the model: with cards that is in the memory of the node
    for _ in range(steps * MICRO):
        engine.backward(engine(tokens))
        engine.step()


def forget_peak():
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")


def _peak(strategy, shape):
    batch = shape.pop("batch")
    forget_peak()
    before = _status("VmRSS")
    train(strategy, shape, batch)
    return _status("VmHWM") - before


def _status(name):
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise LookupError(name)


def main(strategy, rank, world, folder, given):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    if strategy != "single":
        os.environ |= {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": world}
        where = f"file://{folder}/meeting"
        dist.init_process_group("gloo", init_method=where, rank=int(rank), world_size=int(world))
    # What libraries take for themselves is no part of the estimate.
    train(strategy, {"layers": 1, "hidden": 16, "heads": 2, "vocab": 32, "sequence": 8}, 1)
    print(json.dumps([_peak(strategy, shape) for shape in json.loads(given)]), flush=True)
    if strategy != "single":
        dist.barrier()
    # Threads of gloo may abort at a usual end, after the work is done.
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
