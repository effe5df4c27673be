"""An administrator who changes policy past the portal, QoS that go again, and blows that fall."""

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import pytest

from contrib.devcluster.instance import Instance
from gateway.errors import BrokerSilent, BrokerUnreachable

T = TypeVar("T")


class Sacctmgr:
    """An administrator who works past the portal."""

    def __init__(self, cluster: Instance) -> None:
        self.cluster = cluster

    def __call__(self, *words: str) -> str:
        done = self.cluster.run(["sacctmgr", "-i", *words])
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def shown(self, name: str, *columns: str) -> list[str]:
        words = ["sacctmgr", "-nP", "show", "qos", "where", f"name={name}"]
        done = self.cluster.run([*words, f"format={','.join(columns)}"])
        return done.stdout.rstrip("\n").split("|")


@pytest.fixture
def sacctmgr(cluster: Instance) -> Sacctmgr:
    return Sacctmgr(cluster)


@pytest.fixture
def tidy(cluster: Instance) -> Iterator[None]:
    """The QoS that a test made go again."""
    yield
    listed = cluster.run(["sacctmgr", "-nP", "show", "qos", "format=Name"]).stdout.split()
    ours = [name for name in listed if name not in ("normal", "spot", "urgent")]
    # First the lists: one that others may push off cannot go.
    for name in ours:
        cluster.run(["sacctmgr", "-i", "modify", "qos", "where", f"name={name}", "set", "Preempt="])
    if ours:
        cluster.run(["sacctmgr", "-i", "delete", "qos", "where", f"name={','.join(ours)}"])


@contextmanager
def blows(blow: Callable[[], None]) -> Iterator[None]:
    """Again and again while the block runs, with longer and longer pauses: on a slow machine too
    something gets through at last."""
    over = threading.Event()

    def fall() -> None:
        for pause in itertools.count(0.05, 0.05):
            if over.wait(pause):
                return
            blow()

    with ThreadPoolExecutor(1) as pool:
        falling = pool.submit(fall)
        try:
            yield
        finally:
            over.set()
        falling.result()


def until_answered(ask: Callable[[], T], seconds: float = 20) -> T:
    """What is read, as soon as broker and slurmdbd are there again."""
    end = time.monotonic() + seconds
    while True:
        time.sleep(0.05)  # a sacctmgr whose broker was killed may still be on its way
        try:
            return ask()
        except (BrokerUnreachable, BrokerSilent):
            assert time.monotonic() < end, "nobody answers"
