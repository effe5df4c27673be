"""One portal with its own cluster: started, filled with sample people, and ended.

`make demo`, the browser tests and the benchmarks all use it.
"""

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from contrib.demo.api import Api
from contrib.devcluster import jupyterenv, paths, rootfs, torchenv
from contrib.devcluster.instance import Instance
from contrib.devcluster.processes import Process

ROOT = Path(__file__).resolve().parent.parent.parent
SLUICE = Path(sys.executable).parent / "sluice"

Say = Callable[[str], None]

# login, role; each portal account maps to the Unix account of the same name in the cluster.
PEOPLE = (
    ("nlp-lead", "researcher"),
    ("nlp-1", "researcher"),
    ("nlp-2", "researcher"),
    ("vision-lead", "researcher"),
    ("vision-1", "researcher"),
    ("biolab-lead", "researcher"),
    ("biolab-1", "researcher"),
)
ADMINISTRATOR = "admin-1"
LONGEST_SOCKET = 107  # bytes of a Unix socket's path that the kernel takes
SHOWN_LINES = 15

PUT_FILES = """\
import json, pathlib, sys
for name, text in json.load(sys.stdin).items():
    path = pathlib.Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
"""
ENVIRONMENTS = """\
[[environment]]
name = "torch-2.13"
kind = "prefix"
path = "/opt/envs/torch-2.13"
title = { en = "PyTorch 2.13 (CPU)", zh_Hans = "PyTorch 2.13（CPU）" }
"""
NOTEBOOKS = """
[[environment]]
name = "jupyter"
kind = "venv"
path = "/opt/envs/jupyter"
title = { en = "JupyterLab", zh_Hans = "JupyterLab" }
facts = { kit = ["jupyter", "tensorboard"] }
"""


@dataclass(frozen=True, slots=True)
class Login:
    login: str
    password: str


class Portal:
    """Everything of one $SLUICE_HOME: the development cluster and the three processes."""

    def __init__(self, home: Path, *, say: Say = lambda _: None) -> None:
        self.home = home
        self.cluster = Instance(home)
        self._say = say
        self._child: subprocess.Popen[bytes] | None = None  # when this process started it

    def start(
        self, *, with_torch: bool = True, with_jupyter: bool = False, port: int = 8000
    ) -> None:
        """Bring up what is not up yet. Safe to call again."""
        self._require_short_path()
        self.home.mkdir(parents=True, exist_ok=True)
        self.cluster.up(say=self._say)
        if with_torch:
            cache = paths.cache_folder()
            torchenv.ensure(cache, rootfs.ensure(cache, self._say), self._say, allow_cuda=True)
        if with_jupyter:
            cache = paths.cache_folder()
            jupyterenv.ensure(cache, rootfs.ensure(cache, self._say), self._say)
        if not self.running():
            self._say("Starting the portal: database, sample people, processes")
        (self.home / "environments.toml").write_text(ENVIRONMENTS + NOTEBOOKS * with_jupyter)
        # So that commands in another shell speak of the same cluster.
        if not (self.home / "sluice.toml").exists():
            (self.home / "sluice.toml").write_text('cluster_name = "dev"\n')
        self._sluice("db", "upgrade")
        self._add_people()
        self._set_prices()
        self._put_demo_scripts()
        self._put_datasets()
        if not self.running():
            self._start_processes(free_port(port))
        self._wait_until_ready()

    def stop(self) -> None:
        """End the processes and the cluster. The database and the homes' folder stay."""
        process = self._process()
        if process is not None and process.alive():
            os.kill(process.pid, signal.SIGTERM)
            if self._child is not None:
                self._child.wait(30)
            elif not process.gone_within(30):
                process.kill(wait_seconds=5)
        self._record.unlink(missing_ok=True)
        self.cluster.down()

    def running(self) -> bool:
        process = self._process()
        return process is not None and process.alive()

    @property
    def pid(self) -> int:
        """Of `sluice up`, whose children the three processes are."""
        process = self._process()
        if process is None:
            raise RuntimeError("the portal does not run")
        return process.pid

    @property
    def address(self) -> str:
        return str(json.loads(self._record.read_text())["address"])

    def logins(self) -> list[Login]:
        """The sample people and their passwords, made for this folder alone."""
        found = json.loads(self._logins.read_text())
        return [Login(login, password) for login, password in found.items()]

    def api(self, login: str) -> Api:
        """The JSON API, signed in."""
        password = next(entry.password for entry in self.logins() if entry.login == login)
        return Api(self.address).sign_in(login, password)

    @property
    def _record(self) -> Path:
        return self.home / "demo.json"

    @property
    def _logins(self) -> Path:
        return self.home / "demo-logins.json"

    def _process(self) -> Process | None:
        try:
            found = json.loads(self._record.read_text())
        except (FileNotFoundError, ValueError):
            return None
        return Process(**found["process"])

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "SLUICE_HOME": str(self.home)}

    def _sluice(self, *words: str, stdin: str = "") -> str:
        done = subprocess.run(  # noqa: S603
            [SLUICE, *words],
            input=stdin,
            env=self._environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"sluice {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def _require_short_path(self) -> None:
        """The kernel takes no longer address of a socket; said before anything is started."""
        socket_path = os.fsencode(self.home / "run" / "broker.sock")
        if len(socket_path) > LONGEST_SOCKET:
            allowed = LONGEST_SOCKET - len(socket_path) + len(os.fsencode(self.home))
            raise RuntimeError(
                f"SLUICE_HOME is too long for a Unix socket in it: at most {allowed} bytes, "
                f"but it is {self.home}"
            )

    def _add_people(self) -> None:
        if self._logins.exists():
            return
        # an earlier start that was interrupted here may have added some
        there = {line.split("\t")[0] for line in self._sluice("user", "list").splitlines()}
        logins: dict[str, str] = {}
        for login, role in (*PEOPLE, (ADMINISTRATOR, "administrator")):
            logins[login] = secrets.token_urlsafe(9)
            new = ("add", login, "--unix-user", login, "--name", login, "--role", role)
            words = ("passwd", login) if login in there else new
            self._sluice("user", *words, "--password-stdin", stdin=logins[login])
        fresh = self._logins.with_suffix(".new")
        fresh.touch(mode=0o600)
        fresh.write_text(json.dumps(logins, indent=1))
        fresh.replace(self._logins)

    def _set_prices(self) -> None:
        from contrib.demo import money  # noqa: PLC0415  # `down` runs without the packages

        money.set_up(self._environment())

    def give(self, group: str, amount: int) -> None:
        """More credit, for those who submit a lot; whole units of the currency."""
        self._sluice("grant", "top-up", group, str(amount))

    def _put_demo_scripts(self) -> None:
        """Those of every template, as ~/demo/TEMPLATE/train.py."""
        scripts = {
            f"demo/{script.parent.parent.name}/{script.name}": script.read_text()
            for script in sorted((ROOT / "sbatch_templates").glob("*/demo/*.py"))
        }
        for login, _ in PEOPLE:
            done = self.cluster.run(
                ["python3", "-c", PUT_FILES], user=login, stdin=json.dumps(scripts)
            )
            if done.returncode != 0:
                raise RuntimeError(f"No scripts for {login}: {done.stderr.strip()}")

    def _put_datasets(self) -> None:
        from contrib.demo import data  # noqa: PLC0415  # `down` runs without the packages

        data.set_up(self._environment(), self.cluster.run, owner=ADMINISTRATOR)

    def _start_processes(self, port: int) -> None:
        logs = self.home / "logs"
        logs.mkdir(exist_ok=True)
        address = f"127.0.0.1:{port}"
        with (logs / "up.log").open("ab") as log:
            self._child = subprocess.Popen(  # noqa: S603
                [SLUICE, "up"],
                env={**self._environment(), "SLUICE_LISTEN": address},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        process = Process.of(self._child.pid)
        record = {
            "address": f"http://{address}",
            "process": {"pid": process.pid, "started": process.started},
        }
        self._record.write_text(json.dumps(record))

    def _wait_until_ready(self, *, seconds: float = 60) -> None:
        """Ready: pages are served, and the worker has read the policy and the nodes."""
        until = time.monotonic() + seconds
        last = ""
        while time.monotonic() < until:
            try:
                if self.api("nlp-1").get("/offer")["groups"]:
                    return
                last = "it has read no groups from Slurm"
            except Exception as error:  # refused, not yet signed in …
                last = str(error)
            time.sleep(0.3)
        log = self.home / "logs" / "up.log"
        lines = [x for x in log.read_text(errors="replace").splitlines() if "signed_in" not in x]
        tail = "\n".join(f"  {line}" for line in lines[-SHOWN_LINES:])
        raise RuntimeError(f"The portal did not become ready: {last}. {log} ends:\n{tail}")


def free_port(wanted: int) -> int:
    """`wanted` where it is free, or any free one."""
    for port in (wanted, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise RuntimeError("no free port on loopback")
