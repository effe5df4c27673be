"""A small training run on one GPU, or on the CPU where there is none.

python3 train.py --steps 20
"""

import argparse
import os
import time

import torch
from torch import nn


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a tiny model.")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds to sleep in each step")
    options = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "none")
    print(f"training on {device}, devices given by Slurm: {visible}", flush=True)
    loss = train(device, options.steps, options.pause)
    print(f"DONE {options.steps} steps, loss {loss:.4f}", flush=True)


def train(device: torch.device, steps: int, pause: float) -> float:
    """Fit a random linear map."""
    torch.manual_seed(1)
    target = torch.randn(16, 4, device=device)
    model = nn.Linear(16, 4).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss = torch.zeros((), device=device)
    for step in range(1, steps + 1):
        inputs = torch.randn(64, 16, device=device)
        loss = nn.functional.mse_loss(model(inputs), inputs @ target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 5 == 0 or step == steps:
            print(f"step {step} of {steps}, loss {loss.item():.4f}", flush=True)
        time.sleep(pause)
    return loss.item()


if __name__ == "__main__":
    main()
