"""The cluster's root file system: Debian's newest Slurm, and the broker's Python with pyslurm."""

import json
import shutil
from pathlib import Path

from contrib.devcluster import apt, host, pipview, trees
from contrib.devcluster.commands import Say, run, run_logged, with_retries
from contrib.devcluster.paths import GUEST, OVERLAY

SUITE = "forky"  # the first Debian whose Slurm the current pyslurm builds against
PYSLURM = "25.11.2"
GUNICORN = "23.0.0"
PACKAGES = (
    *("ca-certificates", "python3", "python3-venv", "python3-dev", "gcc", "libc6-dev"),
    *("slurm-wlm", "slurmdbd", "slurmrestd", "slurm-wlm-jwt-plugin", "slurm-wlm-mysql-plugin"),
    *("libslurm-dev", "slurm-wlm-basic-plugins-dev", "munge", "mariadb-server"),
    *("iproute2", "procps", "less"),
    *("squashfs-tools", "squashfuse"),  # snapshots of environments
    *("btrfs-progs", "xfsprogs"),  # volumes with quotas
    "rsync",  # a second place of checkpoints; rclone is in the kit: Debian's testing has none
)
VERSIONS_FILE = "etc/sluice-versions.json"
LOG_NAME = "build.log"


def ensure(cache: Path, say: Say) -> Path:
    """The root file system of today's recipe; from the cache, or built into it (minutes)."""
    return trees.ensure(location(cache), lambda partial: _build(partial, say), say)


def location(cache: Path) -> Path:
    return cache / f"rootfs-{recipe()}"


def recipe() -> str:
    parts = [SUITE, PYSLURM, GUNICORN, " ".join(PACKAGES)]
    files = [GUEST / "build-broker.sh", GUEST / "build-database.sh", *OVERLAY.rglob("*.h")]
    return trees.fingerprint([*parts, *sorted(files)])


def versions(root: Path) -> dict[str, str]:
    """What was built: Slurm, pyslurm, Python, gunicorn."""
    loaded: dict[str, str] = json.loads((root / VERSIONS_FILE).read_text())
    return loaded


def _build(partial: Path, say: Say) -> None:
    host.install_tools(say)
    partial.mkdir()
    log = partial.parent / LOG_NAME
    say("Fetching Debian's packages: Slurm, MariaDB, Python (about 300 MB, 940 MB unpacked)")
    with_retries(lambda: _debian(partial, log), what="fetching Debian's packages", say=say)
    say(f"Building pyslurm {PYSLURM} (about a minute)")
    with_retries(lambda: _broker(partial, log), what="installing the broker's Python", say=say)
    say("Preparing the accounting database")
    run(
        trees.inside(partial, ["sh", "/build/build-database.sh"], binds=[(GUEST, Path("/build"))]),
        purpose="Slurm's accounting",
    )
    _note_versions(partial)
    (partial / "build").rmdir()


def _debian(root: Path, log: Path) -> None:
    shutil.rmtree(root)  # what an earlier try left: mmdebstrap wants an empty folder
    root.mkdir()
    source = apt.mirror(host.release())
    words = ["mmdebstrap", "--variant=minbase", "--skip=output/mknod"]
    # the suite moves daily, and a mirror may hold a state that is older than its own expiry date
    words += ['--aptopt=Acquire::Check-Valid-Until "false"', f"--include={','.join(PACKAGES)}"]
    run_logged(
        [*trees.PRIVATE, "--mount-proc", *words, SUITE, root, source],
        purpose="a root file system with Slurm",
        log=log,
    )


def _broker(root: Path, log: Path) -> None:
    view = pipview.of_machine()
    binds = [(path, path) for path in view.binds]
    binds += [(GUEST, Path("/build")), (OVERLAY, Path("/tmp/overlay"))]  # noqa: S108 - the tree's
    env = {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/root",
        "LC_ALL": "C.UTF-8",
        "PYSLURM_VERSION": PYSLURM,
        "GUNICORN_VERSION": GUNICORN,
        **view.env,
    }
    run_logged(
        trees.inside(root, ["sh", "/build/build-broker.sh"], binds=binds),
        purpose="the broker, which speaks to Slurm through pyslurm",
        log=log,
        env=env,
    )


def _note_versions(root: Path) -> None:
    python = (
        "import json, platform; from importlib.metadata import version;"
        "print(json.dumps({'python': platform.python_version(),"
        " 'pyslurm': version('pyslurm'), 'gunicorn': version('gunicorn')}))"
    )
    purpose = "noting what was built"
    found = run(["chroot", root, "/opt/sluice-broker/bin/python", "-c", python], purpose=purpose)
    slurm = run(["chroot", root, "/usr/sbin/slurmd", "-V"], purpose=purpose).split()[-1]
    target = root / VERSIONS_FILE
    target.write_text(json.dumps({"slurm": slurm, **json.loads(found)}) + "\n")
