"""A base, wheels and a store for the tests of snapshots: all real, nothing from a network."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

KIT = Path(__file__).parents[2] / "contrib" / "sluice_train"
needs_squashfs = pytest.mark.skipif(
    shutil.which("mksquashfs") is None or shutil.which("unsquashfs") is None,
    reason="squashfs-tools are not installed",
)


def make_base(folder: Path) -> Path:
    """A virtual environment with pip."""
    venv.create(folder, with_pip=True, symlinks=True)
    return folder


def wheel(
    folder: Path, name: str, version: str = "1.0", files: dict[str, bytes] | None = None
) -> Path:
    """A wheel with a module, a program `<name>-say`, and more `files`."""
    folder.mkdir(exist_ok=True)
    info = f"{name}-{version}.dist-info"
    main = f"VERSION = {version!r}\n\n\ndef main():\n    print('{name}', VERSION, __file__)\n"
    inside = {
        f"{name}/__init__.py": main.encode(),
        **(files or {}),
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[console_scripts]\n{name}-say = {name}:main\n".encode(),
    }
    record = "".join(
        f"{path},sha256={hashlib.sha256(data).hexdigest()},{len(data)}\n"
        for path, data in inside.items()
    )
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for inner, data in inside.items():
            archive.writestr(inner, data)
        archive.writestr(f"{info}/RECORD", f"{record}{info}/RECORD,,\n")
    return path


@dataclass
class Place:
    """A person's store, a node's disk, and jobs; everything below `root`."""

    root: Path
    base: Path
    more: dict[str, str] = field(default_factory=dict)

    def environment(self, job: str) -> dict[str, str]:
        """What the script of such a job sets."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.root),
            "PYTHONPATH": str(KIT),
            "SLUICE_KIT": str(KIT),
            "SLUICE_PYTHON": sys.executable,
            "SLUICE_JOB": job,
            "SLURM_JOB_ID": job,
            "SLUICE_SNAPSHOT_AREA": str(self.root / "area"),
            "SLUICE_LOCAL": str(self.root / "local"),
            "VIRTUAL_ENV": str(self.base),
            "LC_ALL": "C.UTF-8",
            **self.more,
        }

    @property
    def store(self) -> Path:
        return next((self.root / "area").iterdir())

    def start(self, *words: object, job: str = "1", **more: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "sluice_train.env", *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment(job) | more,
        )

    def run(self, *words: object, job: str = "1", **more: str) -> subprocess.CompletedProcess[str]:
        process = self.start(*words, job=job, **more)
        out, errors = process.communicate(timeout=200)
        return subprocess.CompletedProcess(words, process.returncode, out, errors)

    def enter(self, job: str = "1", **more: str) -> Path:
        done = self.run("enter", "--base", "torch", job=job, **more)
        assert done.returncode == 0, done.stderr
        return Path(done.stdout.strip())

    def save(self, env: Path, *note: str, **more: str) -> dict[str, Any]:
        done = self.run("save", "--json", "--overlay", env.parent, *note, **more)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def document(self, snapshot: str) -> Path:
        return self.store / "documents" / f"{snapshot}.json"

    def restore(
        self, snapshot: str, job: str = "2", **more: str
    ) -> subprocess.CompletedProcess[str]:
        return self.run("restore", "--document", self.document(snapshot), job=job, **more)

    def restored(self, snapshot: str, job: str = "2", **more: str) -> Path:
        done = self.restore(snapshot, job=job, **more)
        assert done.returncode == 0, done.stderr
        return Path(done.stdout.strip())

    def layers(self) -> list[Path]:
        return sorted((self.store / "layers").iterdir())


def run(env: Path, *words: object, check: bool = True) -> subprocess.CompletedProcess[str]:
    """A program of the environment, activated as the setup lines of a job do it."""
    script = f'. "{env}/bin/activate" && exec "$@"'
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(env), "PIP_NO_INDEX": "1"}
    return subprocess.run(
        ["bash", "-c", script, "bash", *map(str, words)],
        capture_output=True,
        text=True,
        check=check,
        env=environment,
    )


def install(env: Path, *wheels: Path) -> None:
    run(env, "pip", "install", "-q", "--no-deps", *wheels)
