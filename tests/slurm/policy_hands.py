"""An administrator who changes policy past the portal, and QoS that go again."""

from collections.abc import Iterator

import pytest

from contrib.devcluster.instance import Instance


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
