"""One running cluster: up, down, and the way into its namespaces.

    cluster = Instance(home_folder())
    cluster.up()
    subprocess.run(cluster.enter_argv(["sinfo"]))
    subprocess.Popen(cluster.enter_argv(
        ["/opt/sluice-broker/bin/python", "-m", "gateway.broker"], env={"PYTHONPATH": "/opt/sluice"}
    ))
    cluster.down()

Inside, /opt/sluice/gateway is this checkout's package (read-only), /run/sluice is $SLUICE_HOME/run
on the machine, /home is shared by all nodes and /opt/envs holds the environments for jobs.
"""

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from contrib.devcluster import host, launch, network, rootfs, state
from contrib.devcluster import site as sites
from contrib.devcluster.commands import Say
from contrib.devcluster.errors import DevclusterError
from contrib.devcluster.paths import SITE_FILE, cache_folder
from contrib.devcluster.state import Folders, Record

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ACTIONS = ("stop", "start", "kill", "freeze", "thaw")
DAEMONS = ("slurmctld", "slurmdbd", "slurmd")


@dataclass(frozen=True, slots=True)
class Status:
    up: bool
    pid: int | None = None  # process 1 of the instance, by its id on the machine
    address: str | None = None  # of the head node, as the machine reaches it
    nodes: tuple[tuple[str, str, str], ...] = ()  # name, partition, state
    versions: Mapping[str, str] | None = None


class Instance:
    """The development cluster that belongs to one $SLUICE_HOME."""

    def __init__(self, home: Path, *, cache: Path | None = None) -> None:
        self.folders = Folders(home.absolute())
        self.cache = cache or cache_folder()

    def up(self, *, say: Say = lambda _: None, site_file: Path = SITE_FILE) -> None:
        """Build what is not cached, start, return when a job can run. No effect when up."""
        host.require_root()
        host.require_supported()
        host.install_tools(say)
        site = sites.load(site_file)
        with self._alone():
            if self.running() is not None:
                say("The cluster is up already")
                return
            root = rootfs.ensure(self.cache, say)
            self._clean()  # what a machine that was switched off left behind
            try:
                launch.launch(self.folders, site, root, self.cache, say)
            except BaseException:
                self._clean()
                raise

    def down(self) -> bool:
        """End every process and remove every file but the cache; False when none was up."""
        host.require_root()
        if not self.folders.home.is_dir():
            return False
        with self._alone():
            was_up = self.running() is not None
            self._clean()
        for folder in (self.folders.run, self.folders.home):
            with contextlib.suppress(OSError):  # not empty: others keep their things there
                folder.rmdir()
        return was_up

    def running(self) -> Record | None:
        """The instance's processes, or None when it is down."""
        record = state.read(self.folders.record)
        return record if record is not None and record.init.alive() else None

    def enter_argv(
        self,
        argv: Sequence[str],
        *,
        user: str | None = None,
        env: Mapping[str, str] | None = None,
        node: str | None = None,
    ) -> list[str]:
        """The command that runs `argv` inside, as root or as `user`, on the head or on `node`.

        It gets only PATH, HOME, USER, LC_ALL and `env`, and starts in the home folder. When the
        returned command is ended, the one inside gets SIGTERM.
        """
        host.require_root()
        record = self.running()
        if record is None:
            raise DevclusterError("The development cluster is down: start it with `cluster up`")
        words = ["nsenter", "-t", str(record.init.pid), "-m", "-p", "-n", "-u", "-i"]
        words += ["-r", "-w/"]  # its root: the namespace's own is another where we are in a chroot
        if node is not None:
            words += ["nsenter", "-t", self._holder(node), "-n", "-u"]
        name, uid, gid, folder = self._account(user or "root", Path(record.rootfs))
        words += ["setpriv", "--pdeathsig", "TERM"]
        if uid != 0:
            words += ["--reuid", str(uid), "--regid", str(gid), "--init-groups"]
        given = {
            "PATH": PATH,
            "HOME": folder,
            "USER": name,
            "LOGNAME": name,
            "LC_ALL": "C.UTF-8",
            **(env or {}),
        }
        words += ["env", "-i", "-C", folder, *(f"{key}={value}" for key, value in given.items())]
        return [*words, *argv]

    def run(
        self, argv: Sequence[str], *, user: str | None = None, stdin: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command inside and capture its output; a failure is an exit code, not an error."""
        return subprocess.run(
            self.enter_argv(argv, user=user),
            input=stdin or "",
            capture_output=True,
            text=True,
            check=False,
        )

    def daemon(self, name: str, action: str, *, node: str | None = None) -> None:
        """Stop, start, kill, freeze or thaw a Slurm daemon (slurmd: of one node)."""
        if name not in DAEMONS or action not in ACTIONS:
            raise DevclusterError(f"Known: {', '.join(DAEMONS)} and {', '.join(ACTIONS)}")
        if (name == "slurmd") != (node is not None):
            raise DevclusterError("slurmd needs a node; the other daemons run on the head")
        words = ["sh", "/run/devcluster/daemon.sh", action, name, *([node] if node else [])]
        done = self.run(words)
        if done.returncode != 0:
            raise DevclusterError(f"{action} {name} failed: {done.stderr.strip()}")

    def status(self) -> Status:
        record = self.running()
        if record is None:
            return Status(up=False)
        listed = self.run(["sinfo", "-h", "-N", "-o", "%N %R %T"])
        rows = [line.split() for line in listed.stdout.splitlines()]
        return Status(
            up=True,
            pid=record.init.pid,
            address=f"{record.prefix}.2",
            nodes=tuple((row[0], row[1], row[2]) for row in rows if len(row) == 3),
            versions=rootfs.versions(Path(record.rootfs)),
        )

    def _holder(self, node: str) -> str:
        known = self.folders.etc / "nodes"
        if node not in {path.name for path in known.iterdir()}:
            raise DevclusterError(f"There is no node {node}")
        return (known / node).read_text()

    def _account(self, name: str, root: Path) -> tuple[str, int, int, str]:
        plan = json.loads((self.folders.etc / "plan.json").read_text())
        for line in [*plan["passwd"].splitlines(), *(root / "etc/passwd").read_text().splitlines()]:
            found, _, uid, gid, _, folder, _ = line.split(":")
            if found == name:
                lives = folder if uid == "0" or folder.startswith("/home/") else "/"
                return name, int(uid), int(gid), lives
        raise DevclusterError(f"There is no account {name} in the development cluster")

    def _clean(self) -> None:
        record = state.read(self.folders.record)
        if record is not None:
            # init first: unshare ends only when everything inside has ended
            gone = record.init.kill(wait_seconds=20) and record.outer.gone_within(5)
            if not gone and not record.outer.kill(wait_seconds=5):
                raise DevclusterError(f"Process {record.outer.pid} of the cluster does not end")
        network.remove(self.folders.home)
        if self.folders.cluster.exists():
            shutil.rmtree(self.folders.cluster)
        (self.folders.run / "broker.sock").unlink(missing_ok=True)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """One `up` or `down` at a time; the lock lies on the folder, so it leaves no file."""
        self.folders.home.mkdir(parents=True, exist_ok=True)
        handle = os.open(self.folders.home, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)
