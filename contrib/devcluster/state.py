"""What an instance leaves on the machine while it is up, and how it is found again."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from contrib.devcluster.processes import Process


@dataclass(frozen=True, slots=True)
class Folders:
    """All below $SLUICE_HOME; `cluster` is removed by `down`."""

    home: Path

    @property
    def cluster(self) -> Path:
        return self.home / "cluster"

    @property
    def run(self) -> Path:
        return self.home / "run"

    @property
    def etc(self) -> Path:
        return self.cluster / "etc"

    @property
    def log(self) -> Path:
        return self.cluster / "log"

    @property
    def phase(self) -> Path:
        return self.etc / "phase"

    @property
    def record(self) -> Path:
        return self.cluster / "state.json"


@dataclass(frozen=True, slots=True)
class Record:
    """The two processes of an instance, and what it was made from."""

    outer: Process  # unshare, on the machine
    init: Process  # process 1 inside, by its id on the machine
    rootfs: str
    prefix: str


def write(path: Path, record: Record) -> None:
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(asdict(record)) + "\n")
    fresh.replace(path)


def read(path: Path) -> Record | None:
    """None where nothing was started; the processes may have ended since."""
    try:
        found = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    return Record(
        outer=Process(**found["outer"]),
        init=Process(**found["init"]),
        rootfs=found["rootfs"],
        prefix=found["prefix"],
    )
