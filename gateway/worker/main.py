"""The worker process: build the objects, take the lease, run the periodic jobs."""

import os
import signal
import socket
import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog
from apscheduler import events as happened
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler

from gateway import logs
from gateway.brokerclient.client import SocketBroker
from gateway.config import Settings, load_settings
from gateway.core.billing import Suspended
from gateway.core.gate import Mode
from gateway.errors import Busy
from gateway.services.environments import load_environments
from gateway.services.plan import load_cards
from gateway.services.settle import Rules
from gateway.services.site_jobs import Desk
from gateway.services.templates import Catalogue
from gateway.store.uow import make_begin, make_engine
from gateway.worker.jobs import JOBS, Context, Periodic
from gateway.worker.leader import RENEW_SECONDS, Leader, LeaseLost

log = structlog.get_logger()

# APScheduler's own grace is one second: a job that comes later is left out without a word.
GRACE_SECONDS = 60
_THREADS = len(JOBS) + 1
_COUNTED = {
    happened.EVENT_JOB_MISSED: "missed",
    happened.EVENT_JOB_MAX_INSTANCES: "still_running",
    happened.EVENT_JOB_ERROR: "error",
}
# A read that takes longer than its tick is normal: the next tick finds it running.
_QUIET = frozenset({"still_running"})


class Worker:
    """The scheduler with its jobs. `counts` holds what was missed, skipped or failed."""

    def __init__(self, context: Context, leader: Leader) -> None:
        self.context = context
        self.leader = leader
        self.counts: Counter[str] = Counter()
        self._scheduler = BackgroundScheduler(
            executors={"default": ThreadPoolExecutor(_THREADS)},
            job_defaults={
                "coalesce": True,
                "max_instances": 1,
                "misfire_grace_time": GRACE_SECONDS,
            },
            timezone=UTC,
        )
        self._scheduler.add_listener(self.note, sum(_COUNTED))

    def start(self) -> None:
        self.renew()
        self._scheduler.add_job(self.renew, "interval", seconds=RENEW_SECONDS, id="lease")
        for job in JOBS:
            self._scheduler.add_job(
                self.run, "interval", seconds=job.seconds, id=job.name, args=[job]
            )
        self._scheduler.start()

    def stop(self) -> None:
        """Let running jobs end, then let a standby take over. A training that is ended leaves the
        model as it was."""
        self._scheduler.shutdown(wait=True)
        if self.context.training is not None:
            self.context.training.terminate()
            self.context.training.wait()
        self.leader.give_up()

    def renew(self) -> None:
        led = self.leader.leads()
        leads = self.leader.renew()
        if leads != led:
            log.info("lease_taken" if leads else "lease_lost")

    def run(self, job: Periodic) -> None:
        """One turn of a job, if this process leads."""
        if not self.leader.leads():
            return
        try:
            job.run(self.context)
        except LeaseLost:
            log.warning("lease_lost", job=job.name)
        except Busy as error:
            # Nothing was kept, and the next turn does it again.
            self.counts[f"{job.name}.busy"] += 1
            log.warning("database_busy", job=job.name, error=str(error))

    def note(self, event: Any) -> None:
        """Count and log what APScheduler would skip in silence."""
        kind = _COUNTED[event.code]
        self.counts[f"{event.job_id}.{kind}"] += 1
        if kind in _QUIET:
            return
        error = getattr(event, "exception", None)
        log.error("job_" + kind, job=event.job_id, error=repr(error) if error else None)


def build(settings: Settings) -> Worker:
    engine = make_engine(settings.database_url)
    begin = make_begin(engine)
    holder = f"{socket.gethostname()}-{os.getpid()}-{os.urandom(4).hex()}"
    leader = Leader(holder=holder, begin=begin, clock=_clock)
    desk = Desk(
        begin=leader.begin,
        read=make_begin(engine, read_only=True),
        broker=SocketBroker(settings.broker_socket, settings.broker_timeout_seconds),
        catalogue=Catalogue.load(
            settings.template_folders, kit=settings.node_kit, local=settings.node_local
        ),
        cluster=settings.cluster_name,
        zone=settings.timezone,
        service_login=settings.service_login,
    )
    context = Context(
        begin=leader.begin,
        read=desk.read,
        broker=desk.broker,
        cluster=settings.cluster_name,
        poll_seconds=settings.poll_seconds,
        ingest_seconds=settings.ingest_seconds,
        backfill=timedelta(days=settings.ingest_days),
        rules=Rules(suspended=Suspended.HELD if settings.bill_suspended else Suspended.RUNNING),
        gate=Mode(settings.gate),
        zone=settings.timezone,
        cards=load_cards(settings.home),
        contribution_hour=settings.contribution_hour,
        history=settings.home / "history",
        desk=desk,
        environments=lambda: load_environments(settings.environments_file),
        copy_ahead=settings.dataset_ahead,
        verify_every=timedelta(days=settings.dataset_verify_days),
        check_every=timedelta(days=settings.environment_check_days),
        clock=_clock,
    )
    return Worker(context, leader)


def main() -> None:
    """Run until SIGTERM or SIGINT."""
    logs.configure()
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    worker = build(load_settings())
    worker.start()
    log.info("worker_started")
    stop.wait()
    worker.stop()
    log.info("worker_stopped", **{name.replace(".", "_"): n for name, n in worker.counts.items()})


def _clock() -> datetime:
    return datetime.now(UTC)
