"""`order`: another order of this node's CUDA_VISIBLE_DEVICES, so that good neighbours meet.

Ranks that speak to the next one (pipeline and tensor parallel groups, rings of naive exchange)
gain from it; which cards a job has is Slurm's choice and stays as it is. The new value goes to
standard output; on any doubt nothing does, and the variable stays as it is.
"""

from __future__ import annotations

import os
import signal
import sys
from functools import cache
from typing import TYPE_CHECKING

from sluice_train.node.cards import Doubt, Nvml

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice_train.node.cards import Machine

VARIABLE = "CUDA_VISIBLE_DEVICES"
PATIENCE_SECONDS = 5  # a driver with a lost card may never answer, and the training waits for us
EXACT_UP_TO = 8
# One better link is worth more than any number of the next worse kind.
STEP = 64
WEIGHTS = {"SYS": 0, "NODE": 1, "PHB": STEP, "PXB": STEP**2, "PIX": STEP**3}


def main(argv: Sequence[str]) -> int:  # noqa: ARG001 - all verbs are called alike
    """Print the new order, or nothing; why goes to standard error. Always 0."""
    given = os.environ.get(VARIABLE, "")
    if not given:
        return 0
    signal.alarm(PATIENCE_SECONDS)
    try:
        new, reason = reordered(given, _machine(), device_order=os.environ.get("CUDA_DEVICE_ORDER"))
    except Doubt as doubt:
        new, reason = given, str(doubt)
    except Exception as error:  # a training never fails for its neighbours' order
        new, reason = given, f"{type(error).__name__}: {error}"
    signal.alarm(0)
    node = os.environ.get("SLURMD_NODENAME") or os.uname().nodename
    if new == given:
        print(f"GPU order: {given} kept (node {node}: {reason})", file=sys.stderr)
        return 0
    print(f"GPU order: {given} -> {new} (node {node}: {reason})", file=sys.stderr)
    print(new)
    return 0


def _machine() -> Machine:
    try:
        nvml = Nvml()
    except ImportError:
        from sluice_train.node import smi  # noqa: PLC0415 - starting it up costs, and is rare

        return smi.machine()
    with nvml:
        return nvml.machine()


def reordered(given: str, machine: Machine, *, device_order: str | None) -> tuple[str, str]:
    """The same entries in the best order, and why; `given` itself where nothing is gained.

    Doubt: what an entry stands for is not certain, or a card is cut into MIG slices.
    """
    entries = given.split(",")
    if len(entries) == 1:
        return given, "one card"
    chosen = _chosen(entries, machine, device_order)
    links = [[_link(machine, one, other) for other in chosen] for one in chosen]
    weights = [[_weight(link) for link in row] for row in links]
    ties = [(machine.cards[at].numa or 0, at) for at in chosen]
    best = best_path(weights, ties)
    now = tuple(range(len(entries)))
    if _score(best, weights) <= _score(now, weights):
        return given, f"no order has better neighbours than {_neighbours(now, links)}"
    reason = f"neighbours {_neighbours(best, links)}, before {_neighbours(now, links)}"
    return ",".join(entries[at] for at in best), reason


def best_path(weights: Sequence[Sequence[int]], ties: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    """The order of 0 … n-1 with the greatest sum of weights of neighbours; of these the one
    whose ties come first. Exact up to eight, beyond that the best of greedy walks."""
    if len(weights) <= EXACT_UP_TO:
        return _exact(weights, ties)
    walks = [_greedy(first, weights, ties) for first in range(len(weights))]
    return min(walks, key=lambda walk: (-_score(walk, weights), [ties[at] for at in walk]))


def _exact(weights: Sequence[Sequence[int]], ties: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    # Best ends of a path are shared by all its beginnings: 1,024 of them in place of 40,320 orders.
    @cache
    def best_from(first: int, left: frozenset[int]) -> tuple[int, tuple[int, ...]]:
        if not left:
            return 0, (first,)
        ways = []
        for following in left:
            score, path = best_from(following, left - {following})
            ways.append((score + weights[first][following], (first, *path)))
        return min(ways, key=preferred)

    def preferred(way: tuple[int, tuple[int, ...]]) -> tuple[int, list[tuple[int, int]]]:
        return -way[0], [ties[at] for at in way[1]]

    everything = frozenset(range(len(weights)))
    return min((best_from(at, everything - {at}) for at in everything), key=preferred)[1]


def _greedy(
    first: int, weights: Sequence[Sequence[int]], ties: Sequence[tuple[int, int]]
) -> tuple[int, ...]:
    path = [first]
    left = set(range(len(weights))) - {first}
    while left:
        following = min(left, key=lambda at: (-weights[path[-1]][at], ties[at]))
        path.append(following)
        left.remove(following)
    return tuple(path)


def _chosen(entries: Sequence[str], machine: Machine, device_order: str | None) -> list[int]:
    """The card that each entry stands for, by its place in the machine."""
    if any(entry.startswith("MIG-") for entry in entries):
        raise Doubt("MIG slices keep Slurm's order")
    if all(entry.isascii() and entry.isdigit() for entry in entries):
        if device_order != "PCI_BUS_ID":
            raise Doubt("CUDA_DEVICE_ORDER is not PCI_BUS_ID, so a number is no certain card")
        chosen = [int(entry) for entry in entries]
        if max(chosen) >= len(machine.cards):
            raise Doubt(f"there are {len(machine.cards)} cards, so none has number {max(chosen)}")
    else:
        chosen = [_by_uuid(entry, machine) for entry in entries]
    if len(set(chosen)) != len(chosen):
        raise Doubt("a card is named twice")
    if any(machine.cards[at].mig for at in chosen):
        raise Doubt("a card is cut into MIG slices")
    return chosen


def _by_uuid(entry: str, machine: Machine) -> int:
    """CUDA takes the beginning of a UUID too, if only one card has it."""
    found = [at for at, card in enumerate(machine.cards) if card.uuid.startswith(entry)]
    if not entry.startswith("GPU-") or len(found) != 1:
        raise Doubt(f"{entry!r} is no certain card")
    return found[0]


def _link(machine: Machine, one: int, other: int) -> str:
    return "" if one == other else machine.links[min(one, other), max(one, other)]


def _weight(link: str) -> int:
    if link.startswith("NV"):
        return int(link[2:]) * STEP**4
    return WEIGHTS.get(link, 0)


def _score(path: Sequence[int], weights: Sequence[Sequence[int]]) -> int:
    return sum(weights[one][other] for one, other in zip(path, path[1:]))


def _neighbours(path: Sequence[int], links: Sequence[Sequence[str]]) -> str:
    return " ".join(links[one][other] for one, other in zip(path, path[1:]))
