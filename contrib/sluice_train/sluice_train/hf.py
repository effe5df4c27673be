"""For the Trainer of transformers, 4.x and 5.x: its own checkpoints, at the times of the run.

    trainer = Trainer(..., callbacks=[SluiceCallback()])
    trainer.train(resume_from_checkpoint=sluice_train.resume_path())

`output_dir` is the job's folder of checkpoints, SLUICE_CHECKPOINT_DIR. Never
`resume_from_checkpoint=True`: `get_last_checkpoint` takes the highest number, complete or not.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformers import TrainerCallback

from sluice_train.errors import NoCheckpoint
from sluice_train.run import Run, start

if TYPE_CHECKING:
    from collections.abc import Mapping


class SluiceCallback(TrainerCallback):  # type: ignore[misc]  # untyped where there is no transformers
    """Reports, saves and stops a Trainer; DONE or STOPPED stands when `train` returns.

    `run` is there from the beginning of the training on.
    """

    run: Run

    def __init__(
        self, *, model_params: int | None = None, flops_per_token: float | None = None
    ) -> None:
        """As for `sluice_train.start`."""
        self._model_params = model_params
        self._flops_per_token = flops_per_token
        self._tokens = 0
        self._stepped_at = 0.0

    def on_train_begin(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:
        """All ranks have met; NoCheckpoint where the Trainer does not begin where it should."""
        self.run = start(model_params=self._model_params, flops_per_token=self._flops_per_token)
        if state.global_step != self.run.resume_step:
            raise NoCheckpoint(
                f"The Trainer begins at step {state.global_step} and the run at "
                f"{self.run.resume_step}: call "
                "trainer.train(resume_from_checkpoint=sluice_train.resume_path())."
            )
        self._tokens = state.num_input_tokens_seen
        self.run.ready()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
        """A step is done: what all ranks have agreed on becomes the Trainer's own wish."""
        samples = args.train_batch_size * args.gradient_accumulation_steps * args.world_size
        tokens, self._tokens = (
            state.num_input_tokens_seen - self._tokens,
            state.num_input_tokens_seen,
        )
        counted = {"tokens": tokens} if tokens else {}
        if self.run.step(state.global_step, samples=samples, **counted):
            control.should_save = True
        if self.run.stopping:
            control.should_training_stop = True
            # There is no time for it; and with save_strategy "best" it would undo the save.
            control.should_evaluate = False
        if control.should_save:
            self.run.tell("save_begin", step=state.global_step)
        self._stepped_at = time.monotonic()
        return control

    def on_log(
        self,
        _args: Any,
        _state: Any,
        _control: Any,
        logs: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> None:
        """What the Trainer logs goes out with the next step."""
        numbers = {name: value for name, value in (logs or {}).items() if name != "step"}
        if hasattr(self, "run"):
            self.run.report(**numbers)

    def on_save(self, args: Any, state: Any, _control: Any, **_: Any) -> None:
        """Every rank has written its part: name the files, so that complete means complete."""
        path = Path(args.output_dir).absolute() / f"checkpoint-{state.global_step}"
        self.run.adopt(state.global_step, path, seconds=time.monotonic() - self._stepped_at)

    def on_train_end(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:
        """DONE, or STOPPED."""
        self.run.finish(complete=state.global_step >= state.max_steps)
