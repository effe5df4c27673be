"""Machines with cards for the tests: a C double of NVIDIA's library, and what it is to pretend."""

import secrets
import subprocess
import sys
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parents[1] / "contrib" / "sluice_train"
SOURCE = HERE / "nvml_double" / "nvml.c"
LIBRARY = "libnvidia-ml.so.1"
MISSING_MODULE = 'raise ImportError("not on this node")\n'

BUSES = ("0000:07:00.0", "0000:0f:00.0", "0000:47:00.0", "0000:4e:00.0")
BUSES += ("0000:87:00.0", "0000:90:00.0", "0000:b7:00.0", "0000:bd:00.0")


def uuid(at: int) -> str:
    return f"GPU-{at:08x}-aaaa-bbbb-cccc-0123456789ab"


def card(at: int, *, numa: int = 0, **numbers: int) -> str:
    told = " ".join(f"{name}={value}" for name, value in numbers.items())
    return f"card uuid={uuid(at)} bus={BUSES[at]} numa={numa} {told}\n"


def busy(at: int, *, numa: int = 0, **numbers: int) -> str:
    """A card that tells everything."""
    told = {"util": 90 + at, "used": 10**9 * (at + 1), "total": 85_899_345_920}
    told |= {"power": 301_500, "clock": 1410, "ecc": at, "procs": 1}
    return card(at, numa=numa, **(told | numbers))


def cards(count: int, *, sockets: int = 1) -> str:
    return "".join(busy(at, numa=at * sockets // count) for at in range(count))


# Eight cards, each with twelve links into the switches between them.
NVSWITCH = cards(8, sockets=2) + "".join(f"switch {at} 12\n" for at in range(8))

# Bridges of four links join 0 with 2 and 1 with 3; all else goes over the processors.
PAIRS = cards(4) + "nvlink 0 2 4\nnvlink 1 3 4\n"

# Two sockets with two pairs each behind a PCIe switch, no NVLink.
PCIE = (
    cards(8, sockets=2)
    + "".join(f"topo {at} {at + 1} 10\n" for at in (0, 2, 4, 6))
    + "".join(f"topo {a} {b} 40\n" for a in (0, 1) for b in (2, 3))
    + "".join(f"topo {a} {b} 40\n" for a in (4, 5) for b in (6, 7))
)

SINGLE = cards(1)


@cache
def _built(folder: Path, absent: tuple[str, ...]) -> Path:
    where = folder / ("nvml" + "".join(f"-{name}" for name in absent))
    where.mkdir()
    hidden = [f"-D{name}=absent_{at}" for at, name in enumerate(absent)]
    words = ["gcc", "-Wall", "-Werror", "-shared", "-fPIC", "-O1", *hidden]
    subprocess.run([*words, "-o", where / LIBRARY, SOURCE], check=True)
    return where


class Node:
    """What a node tool finds: a driver's library, a machine, Slurm's variables."""

    def __init__(self, built: Path, folder: Path) -> None:
        self._built = built
        self.folder = folder
        self.job = str(10**9 + secrets.randbelow(10**9))  # of nobody else on this machine
        self.path = folder / "bin"
        self.path.mkdir()
        self.environment = {
            "PATH": f"{self.path}:/usr/bin:/bin",
            "PYTHONPATH": str(PACKAGE),
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
            "SLURMD_NODENAME": "a100-1",
            "SLURM_JOB_ID": self.job,
            "SLUICE_JOB": self.job,
            "SLUICE_RUN_DIR": str(folder / "run"),
        }

    def has(self, machine: str, *, absent: tuple[str, ...] = ()) -> None:
        """Cards as `machine` says; the library lacks the functions `absent`."""
        text = self.folder / "machine.txt"
        text.write_text(machine)
        self.environment["NVML_DOUBLE"] = str(text)
        self.environment["LD_LIBRARY_PATH"] = str(_built(self._built, absent))

    def lacks_pynvml(self) -> None:
        module = self.folder / "without" / "pynvml.py"
        module.parent.mkdir()
        module.write_text(MISSING_MODULE)
        self.environment["PYTHONPATH"] = f"{module.parent}:{PACKAGE}"

    def program(self, name: str, text: str) -> None:
        (self.path / name).write_text(text)
        (self.path / name).chmod(0o755)

    def argv(self, verb: str) -> list[str]:
        return [sys.executable, "-m", "sluice_train.node", verb]

    def run(self, verb: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            self.argv(verb),
            env={**self.environment, **variables},
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def start(self, verb: str, **variables: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            self.argv(verb),
            env={**self.environment, **variables},
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
