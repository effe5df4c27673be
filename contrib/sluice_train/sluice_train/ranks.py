"""The processes of one run, and how they come to one mind: by collectives of torch, or alone.

torch is never imported here. Where it is in use the script has imported it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from sluice_train.errors import WrongWorld
from sluice_train.files import whole

if TYPE_CHECKING:
    from collections.abc import Sequence

# Backends that take tensors of one kind of card; all others take those of the processor.
_DEVICES = {"nccl": "cuda", "hccl": "npu", "xccl": "xpu"}


class Ranks:
    """Who takes part. All collectives below are called by every rank, in the same order."""

    def __init__(self, rank: int = 0, world: int = 1, *, leads_node: bool = True) -> None:
        self.rank = rank
        self.world = world
        self.leads_node = leads_node
        self.first = rank == 0

    @classmethod
    def met(cls) -> Ranks:
        """The ranks that the launcher started; WrongWorld where they are not those asked for."""
        distributed = _distributed()
        # Tasks that srun started and nothing joined would each take itself for the first rank.
        started = whole("WORLD_SIZE", whole("SLURM_STEP_NUM_TASKS", 1))
        if started > 1 and distributed is None:
            raise WrongWorld(
                f"The launcher started {started} ranks, which have not met yet: call "
                "torch.distributed.init_process_group before sluice_train.start."
            )
        world = distributed.get_world_size() if distributed else 1
        expected = whole("EXPECT_WORLD", world)
        if world != expected:
            raise WrongWorld(
                f"This job was given {expected} ranks, and {world} met. Trained like this it "
                "would be another training. Is the script started by the launcher, and does it "
                "call init_process_group?"
            )
        rank = distributed.get_rank() if distributed else 0
        return cls(rank, world, leads_node=whole("LOCAL_RANK", 0) == 0)

    def maximum(self, values: Sequence[float]) -> list[float]:
        """For each place the highest that any rank gave. Waits for all ranks."""
        if self.world == 1:
            return list(values)
        distributed = _met_still()
        torch = sys.modules["torch"]
        highest = torch.tensor(list(values), dtype=torch.float64, device=_device(distributed))
        distributed.all_reduce(highest, op=distributed.ReduceOp.MAX)
        return [float(value) for value in highest.tolist()]

    def all(self, yes: bool) -> bool:
        """Whether every rank said yes. Waits for all ranks."""
        return self.maximum([float(not yes)]) == [0.0]

    def first_text(self, text: str) -> str:
        """The text of the lowest rank that has one. Waits for all ranks."""
        if self.world == 1:
            return text
        texts: list[str] = [""] * self.world
        _met_still().all_gather_object(texts, text)
        return next((f"rank {rank}: {said}" for rank, said in enumerate(texts) if said), "")


def _met_still() -> Any:
    distributed = _distributed()
    if distributed is None:
        raise WrongWorld("The ranks have parted: call run.finish before destroy_process_group.")
    return distributed


def _distributed() -> Any:
    """torch.distributed where a process group is there, else None."""
    module = sys.modules.get("torch.distributed")
    ready = module is not None and module.is_available() and module.is_initialized()
    return module if ready else None


def _device(distributed: Any) -> str:
    """Where a tensor must be for the collectives of the default group.

    A card where there is a choice (`cpu:gloo,cuda:nccl`): the processor's may be in use meanwhile
    by the thread of an asynchronous save.
    """
    backends = str(distributed.get_backend())
    kind = next((kind for backend, kind in _DEVICES.items() if backend in backends), None)
    if kind is None:
        return "cpu"
    cards = getattr(sys.modules["torch"], kind)
    chosen, local = cards.current_device(), whole("LOCAL_RANK", 0)
    # Number 0 is also what a script has that chose none. Where each rank sees only one card, it
    # is right for all of them.
    return f"{kind}:{local if chosen == 0 and local < cards.device_count() else chosen}"
