"""Start the broker: gunicorn on a Unix socket, one request a process, hung ones killed.

pyslurm keeps the interpreter's lock during every call, so threads would not help: one hung
call would delay all the others.
"""

import gc
import os
import sys
from collections.abc import Callable, MutableMapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from gunicorn.app.base import BaseApplication  # type: ignore[import-untyped]  # ships no types

from gateway.broker import accounts, log
from gateway.broker.acts import ActsLog
from gateway.broker.app import Application
from gateway.broker.commands import Commands
from gateway.broker.door import Worker
from gateway.broker.driver import Driver
from gateway.broker.files import Files
from gateway.broker.groups import Groups
from gateway.broker.limits import Limits
from gateway.broker.members import Members
from gateway.broker.priority import Priority
from gateway.broker.qos import QosPolicy
from gateway.broker.sacct import Sacct
from gateway.broker.sacctmgr import Sacctmgr
from gateway.broker.sbatch import Estimator
from gateway.broker.service import Service
from gateway.broker.slots import Slots
from gateway.broker.tokens import Tokens
from gateway.broker.volumes import PROVIDERS, VolumeStore
from gateway.broker.volumes_areas import AreaSettings, Tools, load
from gateway.config import BrokerSettings, load_broker_settings
from gateway.errors import BadConfiguration

_FILE_SECONDS = 5.0
_KEPT = frozenset({"PATH", "HOME", "LANG", "LC_ALL", "TZ", "PYTHONPATH", "PYTHONUNBUFFERED"})
_ARRAY_TEXT = "SLURM_BITSTR_LEN"  # 0: a pending array's task list unshortened (64 bytes else)


def main() -> None:
    """Read the environment, scrub it, load Slurm's library, serve until ended."""
    log.configure()
    try:
        settings = load_broker_settings()
        areas = load(settings.volumes, tuple(PROVIDERS))
    except BadConfiguration as error:
        sys.exit(f"sluice-broker: {error}")
    slurm_conf = scrub(os.environ)
    os.chdir("/")
    settings.socket.parent.mkdir(parents=True, exist_ok=True)
    tokens = Tokens(settings.acts_log.with_suffix(".tokens"))
    wsgi = build(settings, tokens, areas, slurm_conf=slurm_conf)
    server = Server(wsgi, settings, tidy=tokens.forget_old)
    # Memory that the collector never touches stays shared by the workers, and forks stay cheap.
    gc.freeze()
    server.run()


def scrub(environ: MutableMapping[str, str]) -> str | None:
    """Leave nothing that could reach a job; returns SLURM_CONF.

    pyslurm copies each SLURM_* variable that Python can see into every job, so the pointer
    to the configuration stays in the C environment only, where libslurm looks for it.
    """
    slurm_conf = environ.get("SLURM_CONF")
    for name in [name for name in environ if name not in _KEPT]:
        del environ[name]
    if slurm_conf:
        os.putenv("SLURM_CONF", slurm_conf)
    os.putenv(_ARRAY_TEXT, "0")
    return slurm_conf


def build(
    settings: BrokerSettings,
    tokens: Tokens,
    areas: Sequence[AreaSettings] = (),
    *,
    slurm_conf: str | None,
) -> Application:
    """Put the real parts together."""
    files = Files(settings.file_areas, timeout_seconds=_FILE_SECONDS)
    # Shorter than the kill timeout: an answer is better than a dead worker.
    act_seconds = max(1.0, settings.kill_timeout_seconds - 2.0)
    driver = Driver(files)
    driver.load()
    commands = Commands(timeout_seconds=act_seconds, slurm_conf=slurm_conf)
    people = partial(accounts.resolve, min_uid=settings.min_uid)
    alone = Slots(
        settings.acts_log.with_suffix(".policy"),
        count=1,
        patience_seconds=settings.kill_timeout_seconds / 4,
        stuck_seconds=settings.kill_timeout_seconds,  # fifty accounts take seconds
    )
    tokens.forget_old()
    tokens.remember(ActsLog(settings.acts_log).recent_tokens())
    service = Service(
        slurm=driver,
        accounts=people,
        tokens=tokens,
        sacct=Sacct(commands),
        sacctmgr=Sacctmgr(commands, cluster=settings.cluster_name),
        estimator=Estimator(commands, driver.sentences()),
        files=files,
        limits=Limits(commands, cluster=settings.cluster_name),
        qos=QosPolicy(commands, alone),
        priority=Priority(commands),
        members=Members(commands, settings.cluster_name, people),
        groups=Groups(commands, settings.cluster_name, alone),
        volumes=_volumes(settings, areas, act_seconds),
    )
    return application(settings, service)


def _volumes(
    settings: BrokerSettings, areas: Sequence[AreaSettings], seconds: float
) -> VolumeStore:
    """Tools give up before the child that runs them, which does before the answer must be there."""
    alone = Slots(
        settings.acts_log.with_suffix(".volumes"),
        count=1,
        patience_seconds=settings.kill_timeout_seconds / 4,
        stuck_seconds=settings.kill_timeout_seconds,
    )
    return VolumeStore(
        areas=areas,
        tools=Tools(Commands(timeout_seconds=max(1.0, seconds / 3))),
        alone=alone,
        seconds=max(1.0, seconds - 1.0),
        min_gid=settings.min_uid,
    )


def application(settings: BrokerSettings, service: Service) -> Application:
    """The WSGI side over any service."""

    def slots(kind: str) -> Slots:
        return Slots(
            settings.acts_log.with_suffix(kind),
            count=settings.workers - 1,
            patience_seconds=settings.kill_timeout_seconds / 4,
        )

    return Application(
        handlers=service.handlers(),
        acts=ActsLog(settings.acts_log),
        slots=slots(".slots"),
        file_slots=slots(".file-slots"),
        allowed_uids=settings.allowed_uids,
        max_body_bytes=settings.max_body_bytes,
    )


class Server(BaseApplication):  # type: ignore[misc]
    """gunicorn with an application that is built already, before the workers are forked."""

    def __init__(
        self, wsgi: Application, settings: BrokerSettings, *, tidy: Callable[[], None]
    ) -> None:
        self._wsgi = wsgi
        self._settings = settings
        self._tidy = tidy
        super().__init__()

    def load_config(self) -> None:
        settings = self._settings
        options: dict[str, Any] = {
            "bind": [f"unix:{settings.socket}"],
            "workers": settings.workers,
            "worker_class": Worker,
            "timeout": settings.kill_timeout_seconds,
            "graceful_timeout": 5,
            # The mode lets anyone knock; SO_PEERCRED decides who is heard (see door).
            "umask": 0o111,
            # A broker that runs for years tidies up as well, whenever a worker has done its share.
            "child_exit": lambda _server, _worker: self._tidy(),
            "max_requests": 5000,  # libslurm leaks a little
            "max_requests_jitter": 1000,
            "proc_name": "sluice-broker",
            "loglevel": "warning",
            "on_starting": log.take_over,
            "limit_request_line": 200,
            "limit_request_fields": 20,
            "worker_tmp_dir": "/dev/shm" if Path("/dev/shm").is_dir() else None,  # noqa: S108
        }
        if "control_socket_disable" in self.cfg.settings:  # the development cluster's has none
            # Or whoever may write root's ~/.gunicorn could steer the process with rights.
            options["control_socket_disable"] = True
        for name, value in options.items():
            self.cfg.set(name, value)

    def load(self) -> Application:
        return self._wsgi


if __name__ == "__main__":
    main()
