"""Can this machine run the cluster? What is missing is said at once, all of it."""

import os
import shutil
import subprocess
from pathlib import Path

from contrib.devcluster.commands import Say, run, with_retries
from contrib.devcluster.errors import DevclusterError

KNOWN_RELEASES = {"bookworm": "Debian 12", "trixie": "Debian 13"}
NAMESPACES = ("mnt", "pid", "net", "uts", "ipc")
TOOLS = {
    "mmdebstrap": "mmdebstrap",
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "mount": "mount",
    "ip": "iproute2",
}


def require_root() -> None:
    if os.geteuid() != 0:
        raise DevclusterError(
            "The development cluster needs root: it makes namespaces, mounts, device files and a "
            "network interface, and its Slurm starts jobs as several Unix users. Run it with sudo."
        )


def require_supported() -> None:
    """Name everything that this system lacks, in one message."""
    missing = _missing()
    if missing:
        lines = "\n".join(f"  - {what}" for what in missing)
        raise DevclusterError(f"This machine cannot run the development cluster:\n{lines}")


def release() -> str:
    """The code name of the Debian release (bookworm, trixie)."""
    return os_release().get("VERSION_CODENAME", "")


def os_release(path: Path = Path("/etc/os-release")) -> dict[str, str]:
    if not path.is_file():
        return {}
    pairs = (line.partition("=") for line in path.read_text().splitlines() if "=" in line)
    return {key: value.strip('"') for key, _, value in pairs}


def install_tools(say: Say) -> None:
    """Install with apt-get what is missing of the few host programs."""
    packages = sorted({pkg for tool, pkg in TOOLS.items() if shutil.which(tool) is None})
    if not packages:
        return
    names = " ".join(packages)
    say(f"Installing {names} with apt-get")
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    purpose = "building the development cluster's root file system"
    with_retries(
        lambda: _quiet(["apt-get", "update"], purpose, env), what="apt-get update", say=say
    )
    install = ["apt-get", "install", "-y", "--no-install-recommends", *packages]
    with_retries(lambda: _quiet(install, purpose, env), what=f"apt-get install {names}", say=say)


def _quiet(argv: list[str], purpose: str, env: dict[str, str]) -> None:
    run(argv, purpose=purpose, env=env)


def _missing() -> list[str]:
    missing = []
    if release() not in KNOWN_RELEASES:
        name = os_release().get("PRETTY_NAME", "an unknown system")
        missing.append(f"Debian 12 or 13 (this is {name})")
    if shutil.which("apt-get") is None:
        missing.append("apt-get")
    if not _has_filesystem("overlay"):
        missing.append("the overlay file system in the kernel (CONFIG_OVERLAY_FS)")
    absent = [name for name in NAMESPACES if not Path(f"/proc/self/ns/{name}").exists()]
    if absent:
        missing.append("kernel namespaces: " + ", ".join(absent))
    elif not _may_unshare():
        missing.append("the right to make namespaces (CAP_SYS_ADMIN; some containers withhold it)")
    return missing


def _has_filesystem(name: str) -> bool:
    if name in Path("/proc/filesystems").read_text().split():
        return True
    if shutil.which("modprobe") is None:
        return False
    return subprocess.run(["modprobe", name], capture_output=True, check=False).returncode == 0


def _may_unshare() -> bool:
    if shutil.which("unshare") is None:
        return True  # it comes with util-linux, which install_tools brings
    probe = ["unshare", "-m", "-p", "-n", "-u", "-i", "-f", "true"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0
