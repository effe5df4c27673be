"""The same work on many arrays, on two cores: NumPy lets go of Python while it reckons."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")
_CORES = 2


def both(first: Callable[[], A], second: Callable[[], B]) -> tuple[A, B]:
    """What the two return, reckoned beside each other."""
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(second)
        return first(), waiting.result()


def each(work: Callable[[A], B], given: Sequence[A]) -> list[B]:
    """What `work` makes of each, in their order."""
    if len(given) < _CORES:
        return [work(one) for one in given]
    with ThreadPoolExecutor(_CORES) as pool:
        return list(pool.map(work, given))
