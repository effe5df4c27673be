"""The real broker inside the development cluster, and the real client outside it."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from contrib.devcluster.instance import Instance
from gateway.brokerclient.client import SocketBroker
from gateway.errors import GatewayError
from gateway.testing.contracts import Cast

START_SECONDS = 20.0
QUIET_SECONDS = 60.0  # a node that missed a message is asked again within the minute


@dataclass
class BrokerProcess:
    """A broker of one's own: for tests that kill it or give it a special environment."""

    cluster: Instance
    name: str = "broker"
    env: Mapping[str, str] = field(default_factory=dict)
    _process: subprocess.Popen[bytes] | None = None

    @property
    def socket(self) -> Path:
        return self.cluster.folders.run / f"{self.name}.sock"

    @property
    def acts_log(self) -> Path:
        return self.cluster.folders.run / f"{self.name}-acts.log"

    @property
    def log(self) -> Path:
        return self.cluster.folders.run / f"{self.name}.log"

    def client(self, timeout_seconds: float = 30.0) -> SocketBroker:
        return SocketBroker(self.socket, timeout_seconds)

    def start(self) -> None:
        settings = {
            "PYTHONPATH": "/opt/sluice",
            "SLUICE_BROKER_SOCKET": f"/run/sluice/{self.name}.sock",
            "SLUICE_BROKER_ACTS_LOG": f"/run/sluice/{self.name}-acts.log",
            "SLUICE_BROKER_ALLOWED_UIDS": str(os.getuid()),
            "SLUICE_CLUSTER_NAME": "dev",
            "SLUICE_BROKER_VOLUMES": "/run/devcluster/volumes.toml",
            "SLUICE_BROKER_FILE_AREAS": "/home:/datasets:/volumes:/archive",
            **self.env,
        }
        argv = ["/opt/sluice-broker/bin/python", "-m", "gateway.broker"]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.cluster.enter_argv(argv, env=settings), stdout=log, stderr=log
            )
        end = time.monotonic() + START_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"the broker did not start: {self.log.read_text()[-3000:]}")
            time.sleep(0.05)

    def stop(self) -> None:
        """Returns when none of its processes is left.

        The launcher ends at once, the broker after its last request; until then it would answer
        on the socket in place of the next one, and remove that one's socket when it goes.
        """
        process, self._process = self._process, None
        if process is None:
            return
        left = _descendants(process.pid)
        process.terminate()
        process.wait(10)
        end = time.monotonic() + 10
        while any(_lives(pid) for pid in left) and time.monotonic() < end:
            time.sleep(0.02)
        for pid in left:
            _kill(pid)

    def worker_pids(self) -> list[int]:
        """Ids on this machine of the processes that serve requests."""
        assert self._process is not None
        return _descendants(self._process.pid)[1:]

    def kill_workers(self) -> None:
        """kill -9, as the kernel does when memory runs out."""
        for pid in self.worker_pids():
            _kill(pid)

    def _answers(self) -> bool:
        try:
            self.client(5).partitions()
        except GatewayError:
            return False
        return True


@dataclass
class ClusterSite:
    """The hands of the contract tests on the real cluster."""

    cluster: Instance
    broker: SocketBroker
    cast: Cast = field(default_factory=Cast)

    def now(self) -> datetime:
        return datetime.now(UTC)

    def write(self, path: str, owner: str, text: str) -> None:
        self._as(owner, ["sh", "-c", f"cat > {path}"], text)

    def link(self, path: str, owner: str, target: str) -> None:
        self._as(owner, ["ln", "-sfn", target, path])

    def fifo(self, path: str, owner: str) -> None:
        self._as(owner, ["sh", "-c", f"test -p {path} || mkfifo {path}"])

    def until(self, true: Callable[[], bool], seconds: float) -> None:
        end = time.monotonic() + seconds
        while not true():
            if time.monotonic() > end:
                raise AssertionError(f"still not so after {seconds} s\n{self.sight()}")
            time.sleep(0.1)

    def sight(self) -> str:
        """What explains a wait: the queue, the nodes, and why nodes are not there."""
        asked = (["squeue", "--all"], ["sinfo", "--Node", "--long"], ["sinfo", "-R"])
        return "\n".join(self.cluster.run(words).stdout for words in asked)

    def end(self, job_id: int) -> None:
        self._as(self.cast.user, ["touch", f"/home/{self.cast.user}/end-{job_id}"])

    def _as(self, user: str, argv: list[str], text: str = "") -> None:
        done = self.cluster.run(argv, user=user, stdin=text)
        assert done.returncode == 0, done.stderr


@contextlib.contextmanager
def own_broker(cluster: Instance, **env: str) -> Iterator[BrokerProcess]:
    """A broker that the test may kill."""
    process = BrokerProcess(cluster, name="own", env=env)
    process.start()
    try:
        yield process
    finally:
        process.stop()


@pytest.fixture(scope="session")
def broker_process(cluster: Instance) -> Iterator[BrokerProcess]:
    """The shared broker: do not kill it, start a `BrokerProcess` of your own for that."""
    process = BrokerProcess(cluster)
    process.start()
    try:
        yield process
    finally:
        process.stop()


@pytest.fixture(scope="session")
def broker(broker_process: BrokerProcess) -> SocketBroker:
    """The real client of the real broker."""
    return broker_process.client()


@pytest.fixture
def cluster_site(cluster: Instance, broker: SocketBroker) -> Iterator[ClusterSite]:
    """Finds idle nodes, and leaves them behind, also after a test that failed half way."""
    site = ClusterSite(cluster, broker)
    _clear(site)
    yield site
    _clear(site)


def _clear(site: ClusterSite) -> None:
    """Also of what a killed or frozen process submitted after its test had looked."""

    def is_idle() -> bool:
        left = site.cluster.run(["squeue", "--noheader", "--format=%A"]).stdout.split()
        if left:
            site.cluster.run(["scancel", *left])
        return _idle(site.cluster)

    site.until(is_idle, QUIET_SECONDS)


def _idle(cluster: Instance) -> bool:
    """No job, also none that is completing, and no node that is still being given back."""
    nodes = cluster.run(["sinfo", "--noheader", "--format=%T"]).stdout.split()
    return set(nodes) == {"idle"} and not cluster.run(["squeue", "--noheader"]).stdout


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _lives(pid: int) -> bool:
    """Whether it still runs; a process that only waits to be collected does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _descendants(pid: int) -> list[int]:
    """The process, its children and theirs, parents first, launchers left out."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    cmd = Path(f"/proc/{pid}/cmdline").read_bytes()
    own = [pid] if b"gateway.broker" in cmd and b"nsenter" not in cmd.split(b"\0")[0] else []
    return own + [p for child in children for p in _descendants(int(child))]
