"""A small run of the Trainer of transformers with FSDP, as the job's template set it.

SLUICE_FSDP=true SLUICE_FSDP_CONFIG=fsdp.json torchrun --nproc-per-node 2 train.py --steps 20

It saves and stops when it is asked to, and goes on from its newest checkpoint. FSDP wants cards:
`--cpu` trains with plain data parallelism instead, to try all the rest. `--deepspeed FILE` takes
DeepSpeed in FSDP's place.
"""

import argparse
import gc
import os
import shutil
import sys
import time
from typing import Any

import torch
import torch.distributed as dist
from torch.utils.data import Dataset
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)

import sluice_train
from sluice_train.hf import SluiceCallback

WORDS = 64  # of the vocabulary
LENGTH = 32  # tokens of a sample
BATCH = 4  # samples of a rank


def main() -> None:
    options = arguments()
    set_seed(1)
    wanted = TrainingArguments(**settings(options))
    trainer = Trainer(
        model=LlamaForCausalLM(tiny()),
        args=wanted,
        train_dataset=Counting(),
        callbacks=[SluiceCallback(), Slow(options.pause)],
    )
    check_sharded(trainer, options)
    result = trainer.train(resume_from_checkpoint=sluice_train.resume_path())
    if wanted.process_index == 0 and trainer.state.global_step >= options.steps:
        world, loss = wanted.world_size, result.training_loss
        print(f"DONE {options.steps} steps, {world} ranks, mean loss {loss:.6f}", flush=True)
    del trainer
    leave()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train a tiny model with the Trainer.")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds to sleep in each step")
    parser.add_argument("--cpu", action="store_true", help="on the CPU, without FSDP")
    parser.add_argument("--deepspeed", metavar="FILE", help="DeepSpeed's configuration")
    return parser.parse_args()


def settings(options: argparse.Namespace) -> dict[str, Any]:
    """What TrainingArguments get. The callback says when to save, not the steps."""
    chosen: dict[str, Any] = {
        "output_dir": os.environ.get("SLUICE_CHECKPOINT_DIR", "checkpoints"),
        "max_steps": options.steps,
        "per_device_train_batch_size": BATCH,
        "learning_rate": 0.003,
        "save_strategy": "no",
        "save_total_limit": int(os.environ.get("SLUICE_CHECKPOINT_KEEP", "2")),
        "logging_steps": 5,
        "report_to": [],
        "disable_tqdm": True,
        "use_cpu": options.cpu,
        "bf16": torch.cuda.is_available() and torch.cuda.is_bf16_supported(),
    }
    if options.deepspeed:
        without_compiler()
        return {**chosen, "deepspeed": options.deepspeed, "bf16": True}
    if options.cpu:
        return chosen
    # transformers 4 takes the word for how to shard, 5 a yes.
    fsdp = os.environ["SLUICE_FSDP"]
    config = os.environ["SLUICE_FSDP_CONFIG"]
    return {**chosen, "fsdp": True if fsdp == "true" else fsdp, "fsdp_config": config}


def without_compiler() -> None:
    """On a CPU DeepSpeed would compile a collective of its own: gloo has one."""
    if not torch.cuda.is_available() and shutil.which("g++") is None:
        import deepspeed  # noqa: PLC0415 - only who asks for it needs it

        deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False


def tiny() -> LlamaConfig:
    return LlamaConfig(
        vocab_size=WORDS,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=LENGTH,
    )


class Counting(Dataset):  # type: ignore[type-arg]
    """Counts up by a number of its own in each sample: easy to learn."""

    def __len__(self) -> int:
        return 100_000

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        words = (index + torch.arange(LENGTH) * (1 + index % 5)) % WORDS
        return {"input_ids": words, "labels": words}


class Slow(TrainerCallback):
    """Sleeps in each step, so that a short run can be stopped."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def on_step_end(self, *_: Any, **__: Any) -> None:
        time.sleep(self._seconds)


def check_sharded(trainer: Trainer, options: argparse.Namespace) -> None:
    """accelerate may fall back to plain data parallelism without a word."""
    kind = trainer.accelerator.distributed_type.value
    asked = "DEEPSPEED" if options.deepspeed else "FSDP"
    if not options.cpu and kind != asked:
        sys.exit(f"{asked} was asked for, and accelerate took {kind}")
    if trainer.args.process_index == 0:
        print(f"{trainer.args.world_size} ranks, {kind}", flush=True)


def leave() -> None:
    gc.collect()  # gloo's threads must end before the interpreter does (pytorch#179291)
    if dist.is_initialized():
        dist.barrier()
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
