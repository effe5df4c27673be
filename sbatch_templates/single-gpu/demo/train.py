"""A small training run on one GPU, or on the CPU where there is none.

python3 train.py --steps 20

It saves and stops when it is asked to, and goes on from its newest checkpoint.
"""

import argparse
import os
import time
from pathlib import Path

import torch
from torch import nn

import sluice_train

BATCH = 64


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a tiny model.")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds to sleep in each step")
    options = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "none")
    print(f"training on {device}, devices given by Slurm: {visible}", flush=True)
    run = sluice_train.start()
    loss = train(run, device, options.steps, options.pause)
    if not run.stopping:
        print(f"DONE {options.steps} steps, loss {loss:.6f}", flush=True)
    run.finish()


def train(run: sluice_train.Run, device: torch.device, steps: int, pause: float) -> float:
    """Fit a fixed map. A step's batch is decided by the step: a resumed run sees the same."""
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 4)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    if run.resume_path:
        load(Path(run.resume_path), model, optimizer)
    loss = torch.zeros((), device=device)
    for step in run.steps(steps):
        torch.manual_seed(step)
        inputs = torch.randn(BATCH, 16).to(device)
        loss = nn.functional.mse_loss(model(inputs), inputs[:, :4].sin())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 5 == 0 or step == steps:
            print(f"step {step} of {steps}, loss {loss.item():.4f}", flush=True)
        time.sleep(pause)
        if run.step(step, loss=loss, samples=BATCH):
            with run.saving(step) as folder:
                state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                torch.save(state, folder / "state.pt")
    return loss.item()


def load(folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """The model and the optimizer are as they were after the step that was saved."""
    state = torch.load(folder / "state.pt", map_location="cpu")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])


if __name__ == "__main__":
    main()
