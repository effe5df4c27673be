"""One try, in a process of its own: a broken build may end it, or never come back.

What it found is the last line that it prints behind `MARK`, as JSON.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import sys
from typing import Any

MARK = "sluice-check: "
_SIDE = 256


def imported(name: str) -> dict[str, Any]:
    """The version of a package, which is imported for it."""
    module = importlib.import_module(name)
    version = getattr(module, "__version__", None)
    if not isinstance(version, str):
        try:
            version = importlib.metadata.version(name.replace("_", "-"))
        except importlib.metadata.PackageNotFoundError:
            version = ""
    return {"version": version}


def cuda() -> dict[str, Any]:
    """What PyTorch's build is for, and a product of matrices on each card that it sees."""
    torch = _module("torch")
    build = torch.version.cuda
    told: dict[str, Any] = {"cuda": build or "", "archs": list(torch.cuda.get_arch_list())}
    if not build or not torch.cuda.is_available():
        return {**told, "cards": 0}
    count = torch.cuda.device_count()
    for card in range(count):
        ones = torch.ones(_SIDE, _SIDE, device=f"cuda:{card}")
        if (ones @ ones).sum().item() != _SIDE**3:
            raise ArithmeticError(f"card {card} multiplies wrongly")
    capability = ".".join(str(part) for part in torch.cuda.get_device_capability(0))
    return {**told, "cards": count, "capability": capability}


def collective() -> dict[str, Any]:
    """The sum of what all ranks have, on each of them. Started by torchrun."""
    torch, dist = _module("torch"), _module("torch.distributed")
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    on_cards = bool(torch.version.cuda) and torch.cuda.is_available()
    on_cards = on_cards and torch.cuda.device_count() >= world
    device = f"cuda:{rank}" if on_cards else "cpu"
    if on_cards:
        torch.cuda.set_device(rank)
    backend = "nccl" if on_cards else "gloo"
    dist.init_process_group(backend)
    value = torch.full((1 << 20,), float(rank + 1), device=device)
    dist.all_reduce(value)
    expected = world * (world + 1) / 2
    wrong = int((value != expected).sum().item())
    dist.destroy_process_group()
    if wrong:
        raise ArithmeticError(f"rank {rank}: {wrong} sums are wrong")
    return {"backend": backend, "ranks": world}


def attention() -> dict[str, Any]:
    """FlashAttention's kernel against PyTorch's own."""
    torch, flash_attn = _module("torch"), _module("flash_attn")
    shape = (2, 128, 4, 64)  # batch, length, heads, width
    query, key, value = (torch.randn(shape, device="cuda", dtype=torch.float16) for _ in range(3))
    found = flash_attn.flash_attn_func(query, key, value)
    plain = torch.nn.functional.scaled_dot_product_attention(
        query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2)
    ).transpose(1, 2)
    apart = float((found - plain).abs().max().item())
    if apart > 0.01:
        raise ArithmeticError(f"the kernel is off by {apart:.3g}")
    return {"off_by": apart}


def _module(name: str) -> Any:
    """For each try only what it needs: an import of PyTorch takes seconds."""
    return importlib.import_module(name)


def main(argv: list[str]) -> int:
    """Run the try that `argv` names, and print what it found."""
    tries = {"cuda": cuda, "collective": collective, "attention": attention}
    found = imported(argv[1]) if argv[0] == "import" else tries[argv[0]]()
    print(MARK + json.dumps(found), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
