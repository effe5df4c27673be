"""A small training run whose learning rate and width come from a row of the sweep's table.

python3 train.py --steps 20 --lr 0.01 --width 64

It saves and stops when it is asked to, and goes on from its newest checkpoint. The last line
holds what the row reached, to compare the rows by.
"""

import argparse
import json
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
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--width", type=int, default=64)
    options = parser.parse_args()
    run = sluice_train.start()
    loss = train(run, options)
    if not run.stopping:
        reached = {"lr": options.lr, "width": options.width, "loss": round(loss, 6)}
        print("RESULT", json.dumps(reached), flush=True)
    run.finish()


def train(run: sluice_train.Run, options: argparse.Namespace) -> float:
    """Fit a fixed map. A step's batch is decided by the step: a resumed run sees the same."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(1)
    width = options.width
    model = nn.Sequential(nn.Linear(16, width), nn.Tanh(), nn.Linear(width, 4)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=options.lr)
    if run.resume_path:
        load(Path(run.resume_path), model, optimizer)
    loss = torch.zeros((), device=device)
    for step in run.steps(options.steps):
        torch.manual_seed(step)
        inputs = torch.randn(BATCH, 16).to(device)
        loss = nn.functional.mse_loss(model(inputs), inputs[:, :4].sin())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(options.pause)
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
