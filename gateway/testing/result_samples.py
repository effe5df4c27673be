"""Three runs of one experiment that printed metrics: for pages and for a look by hand."""

import math
from datetime import datetime, timedelta
from typing import Any

from gateway.store import training
from gateway.store.uow import Begin
from gateway.testing.fakefiles import FakeFiles
from gateway.testing.training import add_portal_job

RATES = (0.1, 0.01, 0.001)


def printed(rate: float, *, steps: int = 200) -> str:
    """What a program prints: progress for people, and a line of metrics every tenth step."""
    lines = []
    for step in range(0, steps + 1, 10):
        loss = 0.2 + 3.0 * math.exp(-step * rate * 3) + 0.01 * math.sin(step)
        lines.append(f"step {step}\r")
        lines.append(f"::metric val/loss={loss:.5f} accuracy={1 - loss / 4:.4f} step={step}\n")
        lines.append(f"::metric grad_norm={10 ** (4 - 5 * step / steps):.5g} step={step}\n")
    if rate == max(RATES):
        lines.append(f"::metric grad_norm=nan step={steps}\n")
    return "".join(lines)


def fill_results(
    begin: Begin, files: FakeFiles, *, now: datetime, user: str = "nlp-1", **job: Any
) -> list[int]:
    """The jobs, which run; the worker's turn reads what they printed. The first has logs."""
    made = []
    for n, rate in enumerate(RATES):
        name = f"sweep-lr-{rate}"
        path = f"/home/{user}/{name}.out"
        files.write(path, user, printed(rate))
        made.append(
            add_portal_job(
                begin, user, name=name, output=path, start_time=now - timedelta(minutes=50 - n),
                submit_time=now - timedelta(hours=2 + n), gpus=2**n, gpu_type="a100",
                template="command", **job,
            )
        )  # fmt: skip
    with begin() as session:
        training.take_up(session, made, now=now)
    logs = f"/home/{user}/runs/sweep"
    files.write(f"{logs}/events.out.tfevents.1700000000.a100-1", user, "x")
    run = f"/home/{user}/mlruns/0/{'ab' * 16}/metrics"
    files.write(f"{run}/val_loss", user, "1700000000000 0.5 1\n1700000001000 0.25 2\n")
    for folder in (f"/home/{user}/runs", logs, f"/home/{user}/mlruns", f"/home/{user}/mlruns/0"):
        files.add_folder(folder, user)
    return made
