"""A node with cards for the node tools, without cards."""

from pathlib import Path

import pytest
from nvml_machine import Node


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the doubles of NVIDIA's library are built, each once."""
    return tmp_path_factory.mktemp("nvml")


@pytest.fixture
def node(built: Path, tmp_path: Path) -> Node:
    """Without a driver until the test says `node.has(MACHINE)`."""
    return Node(built, tmp_path)
