"""The kit on the cluster's nodes: the checkout's sluice_train, and what its node tools use.

pynvml and py-spy come with pip; rclone from the machine's own Debian, for the suite that the root
file system is made of has none.

The package is copied at every start, so that a change of it needs no rebuild; copied and not
mounted, because the checkout may lie where the cluster's people cannot read it.
"""

import os
import shutil
import tempfile
from pathlib import Path

from contrib.devcluster import host, pipview, rootfs, trees
from contrib.devcluster.commands import Say, run, run_logged, with_retries
from contrib.devcluster.paths import CHECKOUT

PLACE = "/opt/sluice/kit"
PACKAGE = "sluice_train"
SOURCE = CHECKOUT / "contrib" / PACKAGE / PACKAGE
REQUIREMENTS = ("nvidia-ml-py==13.615.71", "py-spy==0.4.3")
PIP = "/opt/sluice-broker/bin/pip"
RCLONE_PURPOSE = "copies of checkpoints in a second place"


def ensure(cache: Path, root: Path, say: Say) -> Path:
    """The folder with pynvml, py-spy and rclone; from the cache, or downloaded into it (15 s)."""
    parts = [*REQUIREMENTS, rootfs.versions(root)["python"], host.release(), "rclone"]
    recipe = trees.fingerprint(parts)
    return trees.ensure(cache / f"kit-{recipe}", lambda partial: _build(partial, root, say), say)


def copy_package(folder: Path) -> None:
    """The package into `folder`, readable for everybody, with room for the libraries."""
    (folder / "lib").mkdir(parents=True)
    target = folder / PACKAGE
    shutil.copytree(SOURCE, target, ignore=shutil.ignore_patterns("__pycache__"))
    for path in (folder, folder / "lib", target, *target.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


def _build(partial: Path, root: Path, say: Say) -> None:
    say("Downloading what the node tools use: pynvml, py-spy and rclone (18 MB, 60 MB unpacked)")
    partial.mkdir()
    with_retries(lambda: _pip(partial, root), what="installing the kit's libraries", say=say)
    with_retries(lambda: _rclone(partial), what="fetching rclone", say=say)


def _pip(partial: Path, root: Path) -> None:
    view = pipview.of_machine()
    binds = [*((path, path) for path in view.binds), (partial, Path(PLACE, "lib"))]
    words = [PIP, "install", "--only-binary=:all:", "--no-deps", "--upgrade"]
    words += ["--target", f"{PLACE}/lib", *REQUIREMENTS]
    env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8"}
    run_logged(
        trees.inside(root, words, binds=binds),
        purpose="telemetry and the order of GPUs",
        log=partial.parent / rootfs.LOG_NAME,
        env={**env, **view.env},
    )


def _rclone(partial: Path) -> None:
    # a machine that has just been installed has no lists of packages yet
    run(["apt-get", "update"], purpose=RCLONE_PURPOSE)
    with tempfile.TemporaryDirectory() as folder:
        fetch = ["env", "-C", folder, "apt-get", "download", "rclone"]
        run(fetch, purpose=RCLONE_PURPOSE, env={**os.environ, "LC_ALL": "C"})
        (package,) = Path(folder).glob("rclone_*.deb")
        run(["dpkg-deb", "-x", package, f"{folder}/tree"], purpose=RCLONE_PURPOSE)
        shutil.copy2(f"{folder}/tree/usr/bin/rclone", partial / "bin" / "rclone")
