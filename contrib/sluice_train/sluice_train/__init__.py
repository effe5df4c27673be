"""Saving, stopping, resuming and reporting for a training script, under Sluice or without it.

run = sluice_train.start()
if run.resume_path:
    load(run.resume_path)
for step in run.steps(total):
    loss = train_one_step()
    if run.step(step, loss=loss, tokens=tokens):
        with run.saving(step) as folder:
            save(folder)
run.finish()

Any script may report numbers under names of its own, without the rest:

from sluice_train import report
report(accuracy=0.9, step=100)
"""

from sluice_train.checkpoint import Checkpoint
from sluice_train.errors import NoCheckpoint, WrongWorld
from sluice_train.report import report
from sluice_train.run import Run, resume_path, start
from sluice_train.stop import outlive_term

__all__ = [
    "Checkpoint",
    "NoCheckpoint",
    "Run",
    "WrongWorld",
    "outlive_term",
    "report",
    "resume_path",
    "start",
]
