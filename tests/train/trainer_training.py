"""A training with the Trainer of transformers, for test_library_trainer.py. Starts nothing.

usage: trainer_training.py TOTAL [ignore-resume], in an environment such as torchrun makes.
"""

import gc
import os
import sys
import time

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

import sluice_train
from sluice_train.hf import SluiceCallback


class Sentences(torch.utils.data.Dataset):
    """The same few tokens again and again, each a moment after the other."""

    def __len__(self) -> int:
        return 4000

    def __getitem__(self, number: int) -> dict[str, torch.Tensor]:
        time.sleep(0.01)
        words = torch.arange(number, number + 8) % 32
        return {"input_ids": words, "labels": words}


def main(total: int, resume: str | None) -> None:
    """Train a model of a few thousand parameters for `total` steps."""
    torch.manual_seed(1)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=32,
            hidden_size=16,
            intermediate_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
        )
    )
    arguments = TrainingArguments(
        output_dir=os.environ["SLUICE_CHECKPOINT_DIR"],
        max_steps=total,
        per_device_train_batch_size=2,
        logging_steps=1,
        save_strategy="no",
        use_cpu=True,
        report_to=[],
        disable_tqdm=True,
    )
    trainer = Trainer(model, arguments, train_dataset=Sentences(), callbacks=[SluiceCallback()])
    trainer.train(resume_from_checkpoint=resume)
    print(f"ended at {trainer.state.global_step}", flush=True)
    if torch.distributed.is_initialized():
        # Gloo's threads sometimes abort a process that ends while they live.
        del trainer, model
        gc.collect()
        torch.distributed.barrier()
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), None if sys.argv[2:] else sluice_train.resume_path())
