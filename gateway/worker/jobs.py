"""The periodic jobs. Each is safe to kill and to run again; `JOBS` is the whole list.

A job that reads Slurm ticks every second and looks in the database whether a read is due, so
that a submit in another process can ask for one.
"""

import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path

import structlog

from gateway.brokerclient.port import Broker
from gateway.core.dataset_ahead import Planned
from gateway.core.gate import Mode
from gateway.core.pace import Last, is_due, next_interval
from gateway.core.planner.cards import Cards
from gateway.errors import BadConfiguration, Refused
from gateway.services import budgets as budgeting
from gateway.services import clean_up as cleaning
from gateway.services import contribution as contributions
from gateway.services import (
    credit,
    dataset_ahead,
    dataset_verify,
    deliver,
    environment_checks,
    forecast_keep,
    forecast_train,
    forecaster,
    gate_checks,
    hold,
    keep_history,
    link,
    members,
    policy_apply,
    policy_drift,
    poll,
    recipe_reruns,
    review,
    site_jobs,
    volume_charges,
    volume_read,
    waits,
)
from gateway.services import enforce as enforcing
from gateway.services import ingest as accounting
from gateway.services import reconcile as reconciling
from gateway.services import settle as settling
from gateway.services import smoke as smoking
from gateway.services import spot as preemptions
from gateway.services import training as runs
from gateway.services.environments import Environment
from gateway.services.site_kinds import KINDS
from gateway.store import polls
from gateway.store.uow import Begin

log = structlog.get_logger()

RECENT = timedelta(minutes=15)
CLUSTER_SECONDS = 30.0
POLICY_SECONDS = 60.0
PRIORITY_SECONDS = 60.0
LATE_SECONDS = 600.0


@dataclass(slots=True)
class Context:
    """What the jobs work with. `took` and `failed` remember the last read of each kind;
    `backfill` is how far back accounting is read when it has never been."""

    begin: Begin
    read: Begin
    broker: Broker
    cluster: str
    poll_seconds: float
    ingest_seconds: float
    clock: Callable[[], datetime]
    backfill: timedelta = accounting.FIRST_WINDOW
    rules: settling.Rules = field(default_factory=settling.Rules)
    gate: Mode = Mode.ENFORCE
    history: Path | None = None  # the folder of the columnar history; None: none is kept
    zone: tzinfo = UTC
    cards: Cards = field(default_factory=dict)  # of the planner
    contribution_hour: int = 3
    verify_every: timedelta = timedelta(0)  # of datasets; 0: never by the clock
    copy_ahead: bool = False  # datasets to the nodes of jobs that will start soon
    planned: tuple[Planned, ...] = ()  # by the last read of the queue
    desk: site_jobs.Desk | None = None  # None: no jobs of the portal's own are sent
    environments: Callable[[], tuple[Environment, ...]] = tuple  # the file's
    check_every: timedelta = timedelta(0)  # of each environment; 0: never by the clock
    gate_memory: enforcing.Memory = field(default_factory=enforcing.Memory)
    stopwatch: Callable[[], float] = time.monotonic
    took: dict[str, float] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)
    training: "subprocess.Popen[bytes] | None" = None  # of the model of forecasts


@dataclass(frozen=True, slots=True)
class Periodic:
    name: str
    seconds: float
    run: Callable[[Context], None]


def queue(context: Context) -> None:
    """One read of the queue for everyone."""

    def read(now: datetime) -> str | None:
        report = poll.poll_queue(
            begin=context.begin,
            broker=context.broker,
            cluster=context.cluster,
            now=now,
            read=context.read,
        )
        context.planned = report.planned
        link.cancel_duplicates(
            report.duplicates, begin=context.begin, broker=context.broker, now=now
        )
        return report.error_code

    _paced(context, poll.QUEUE, context.poll_seconds, read)


def cluster(context: Context) -> None:
    """Nodes, partitions and reservations."""
    _paced(
        context,
        poll.CLUSTER,
        CLUSTER_SECONDS,
        lambda now: (
            poll.poll_cluster(
                begin=context.begin, broker=context.broker, now=now, zone=context.zone
            ).error_code
        ),
    )


def policy(context: Context) -> None:
    """Associations, QoS, accounts and fair shares."""

    def read(now: datetime) -> str | None:
        code = poll.poll_policy(begin=context.begin, broker=context.broker, now=now).error_code
        if code is None:
            policy_drift.look(begin=context.begin, read=context.read, now=now)
        return code

    _paced(context, poll.POLICY, POLICY_SECONDS, read)


def policy_changes(context: Context) -> None:
    """Changes of policy that are due, half done, or at their end."""
    report = policy_apply.apply_due(
        begin=context.begin,
        read=context.read,
        broker=context.broker,
        now=context.clock(),
        stopwatch=context.stopwatch,
    )
    for change_id, state in report.states:
        log.info("policy_change", change=change_id, state=state.value)


def priority(context: Context) -> None:
    """Why one waiting job stands before another."""
    _paced(
        context,
        poll.PRIORITY,
        PRIORITY_SECONDS,
        lambda now: (
            poll.poll_priority(begin=context.begin, broker=context.broker, now=now).error_code
        ),
    )


def ingest(context: Context) -> None:
    """Ended jobs and their runs, from accounting."""
    _ingest(context, accounting.FIRST_TURN, context.ingest_seconds)


def ingest_late(context: Context) -> None:
    """The same once more, for what accounting was told late."""
    _ingest(context, accounting.LATE_TURN, LATE_SECONDS)


def reconcile(context: Context) -> None:
    """Jobs that went from the queue a moment ago."""
    _reconcile(context, recent=RECENT)


def reconcile_old(context: Context) -> None:
    """Jobs that went long ago and whose end nobody has told yet."""
    _reconcile(context, recent=None)


def outbox(context: Context) -> None:
    """Submissions that could not be delivered, or whose outcome is unknown."""
    deliver.deliver_due(begin=context.begin, broker=context.broker, now=context.clock())


def memberships(context: Context) -> None:
    """What is wanted of people's places in groups and Slurm does not have yet."""
    done = members.carry_on(
        begin=context.begin, read=context.read, broker=context.broker, now=context.clock()
    )
    if done:
        log.info("memberships_changed", done=done)


def smoke(context: Context) -> None:
    """What waits for a smoke job: sent when that is a job, cancelled when it did not pass."""
    now = context.clock()
    smoking.release(begin=context.begin, read=context.read, now=now)
    cancelled = smoking.cancel_stranded(
        begin=context.begin, read=context.read, broker=context.broker, now=now
    )
    if cancelled:
        log.info("smoke_jobs_failed", cancelled=cancelled)


def settle(context: Context) -> None:
    """Charge ended runs, give back what their holds kept, let lapse what is past its end."""
    now = context.clock()
    if not _facts_are_known(context, now):
        return  # nobody knows whether accounting counts GPUs: later is better than 0
    context.rules = replace(context.rules, tracked=gate_checks.gpus_tracked(read=context.read))
    report = settling.settle(begin=context.begin, read=context.read, now=now, rules=context.rules)
    released = hold.release_due(begin=context.begin, now=now)
    lapsed = credit.expire_due(begin=context.begin, now=now)
    if report.settled or released or lapsed:
        log.info(
            "settled",
            runs=report.settled,
            posted=report.posted,
            corrected=report.corrected,
            refunded=report.refunded,
            review=report.review,
            holds_released=released,
            pots_lapsed=lapsed,
        )


def enforce(context: Context) -> None:
    """Bring the limits of groups and the holds of jobs into step with their credit."""
    now = context.clock()
    _facts_are_known(context, now)
    report = enforcing.enforce(
        begin=context.begin,
        read=context.read,
        broker=context.broker,
        cluster=context.cluster,
        memory=context.gate_memory,
        now=now,
        mode=context.gate,
        zone=context.zone,
        stopwatch=context.stopwatch,
    )
    if report.acted:
        log.info(
            "gate",
            mode=context.gate.value,
            closed=report.closed,
            limits_written=report.limits.written,
            limits_failed=report.limits.failed,
            jobs_held=report.jobs.held,
            jobs_released=report.jobs.released,
            jobs_stopped=report.jobs.stopped,
            code=report.code,
        )


def find_lost(context: Context) -> None:
    """Runs that nobody ends: for a person to look at."""
    found = review.find_lost(begin=context.begin, now=context.clock())
    if found:
        log.warning("runs_without_end", runs=found)


def budgets(context: Context) -> None:
    """Tell groups which thresholds of their budgets are reached."""
    told = budgeting.tell_due(begin=context.begin, read=context.read, now=context.clock())
    if told:
        log.info("budget_thresholds_reached", thresholds=told)


def training(context: Context) -> None:
    """What training runs tell of themselves, from their folders."""
    report = runs.follow(
        begin=context.begin,
        read=context.read,
        broker=context.broker,
        now=context.clock(),
        stopwatch=context.stopwatch,
    )
    if report.error_code:
        log.warning("training_unread", code=report.error_code, jobs_left=report.left)


def history(context: Context) -> None:
    """The columnar history, in step with the runs in the database."""
    if context.history is None:
        return
    kept = keep_history.keep(
        context.history, begin=context.begin, read=context.read, now=context.clock()
    )
    if kept.rebuilt:
        log.info("history_rebuilt", blocks=kept.made)
    waits.prepare(context.history)


def forecasts(context: Context) -> None:
    """When the jobs that wait will start, and what came of earlier forecasts."""
    if context.history is None:
        return
    now = context.clock()
    here = forecaster.here(context.cluster, read=context.read)
    report = forecast_keep.renew(
        forecaster=forecaster.answers_now(context.history, now=now, here=here, keep=True),
        begin=context.begin,
        read=context.read,
        now=now,
    )
    if report.waiting or report.resolved:
        log.info("forecasts", waiting=report.waiting, kept=report.kept, resolved=report.resolved)


def forecast_model(context: Context) -> None:
    """Train the model of forecasts once a day, in a process of its own."""
    if context.history is None:
        return
    child = context.training
    if child is not None:
        code = child.poll()
        if code is None:
            return
        (log.warning if code else log.info)("forecast_model_trained", exit_code=code)
        context.training = None
    now = context.clock()
    here = forecaster.here(context.cluster, read=context.read)
    if forecast_train.is_due(context.history, now=now, here=here):
        context.training = forecast_train.start(context.history, now=now, here=here)


def spot(context: Context) -> None:
    """How often and after how long runs were preempted, summed up once an hour."""
    preemptions.refresh(
        begin=context.begin, read=context.read, now=context.clock(), zone=context.zone
    )


def contribution(context: Context) -> None:
    """The night's shares, from what groups brought: a change that is due, or waits for a yes."""
    run = contributions.run_nightly(
        hour=context.contribution_hour,
        begin=context.begin,
        read=context.read,
        now=context.clock(),
        zone=context.zone,
    )
    if run is not None:
        log.info(
            "contribution_run", groups=run.groups, differing=run.differing, change=run.change_id
        )


def collect_site_jobs(context: Context) -> None:
    """The portal's own jobs that are over."""
    closed = site_jobs.collect(
        begin=context.begin,
        read=context.read,
        broker=context.broker,
        kinds=KINDS,
        now=context.clock(),
    )
    if closed:
        log.info("site_jobs_over", jobs=closed)


def check_environments(context: Context) -> None:
    """Environments that were not tried on a type of card for long."""
    desk = context.desk
    if desk is None or not desk.service_login or not context.check_every:
        return
    try:
        sent = environment_checks.start_due(
            desk=desk,
            file=context.environments(),
            every=context.check_every,
            now=context.clock(),
        )
    except (BadConfiguration, Refused) as error:
        log.warning("environments_unchecked", code=error.code, text=str(error)[:500])
        return
    if sent:
        log.info("environment_checks_sent", jobs=sent)


def verify_datasets(context: Context) -> None:
    """Published datasets that nobody has read for long."""
    desk = context.desk
    if desk is None or not desk.service_login or not context.verify_every:
        return
    try:
        sent = dataset_verify.start_due(desk=desk, every=context.verify_every, now=context.clock())
    except Refused as error:
        log.warning("datasets_unverified", code=error.code)
        return
    if sent:
        log.info("dataset_verifications_sent", jobs=sent)


def copy_datasets(context: Context) -> None:
    """Datasets to the nodes of jobs that are expected to start soon."""
    desk = context.desk
    if desk is None or not context.copy_ahead:
        return
    dataset_ahead.take_back_late(desk=desk, now=context.clock())
    sent = dataset_ahead.copy_due(context.planned, desk=desk, now=context.clock())
    if sent:
        log.info("dataset_copies_sent", jobs=sent)


def volumes(context: Context) -> None:
    """Figures of volumes once an hour, limits that somebody died over, and months that are over."""
    now = context.clock()
    report = volume_read.look_when_due(
        begin=context.begin, broker=context.broker, now=now, zone=context.zone
    )
    if report is not None and report.code is not None:
        log.warning("volumes_unread", code=report.code)
    charged = volume_charges.charge_due(begin=context.begin, now=now, zone=context.zone)
    if charged:
        log.info("volumes_charged", lines=charged)


def clean_up(context: Context) -> None:
    """Old sign-in failures, ended sessions, forecasts and the telemetry of runs of long ago."""
    now = context.clock()
    cleaning.clean_up(begin=context.begin, now=now)
    forecast_keep.prune(begin=context.begin, now=now)


def recipes(context: Context) -> None:
    """Jobs that repeat a recipe and are over are compared with its receipt."""
    recipe_reruns.judge_ended(
        begin=context.begin, read=context.read, cards=context.cards, now=context.clock()
    )


JOBS = (
    Periodic("queue", 1.0, queue),
    Periodic("cluster", 1.0, cluster),
    Periodic("policy", 1.0, policy),
    Periodic("policy_changes", 5.0, policy_changes),
    Periodic("priority", 1.0, priority),
    Periodic("ingest", 1.0, ingest),
    Periodic("ingest_late", 10.0, ingest_late),
    Periodic("reconcile", 30.0, reconcile),
    Periodic("reconcile_old", 600.0, reconcile_old),
    Periodic("outbox", 2.0, outbox),
    Periodic("memberships", 10.0, memberships),
    Periodic("smoke", 2.0, smoke),
    Periodic("settle", 5.0, settle),
    Periodic("enforce", 10.0, enforce),
    Periodic("find_lost", 600.0, find_lost),
    Periodic("budgets", 60.0, budgets),
    Periodic("training", 5.0, training),
    Periodic("history", 15.0, history),
    Periodic("forecasts", 300.0, forecasts),
    Periodic("forecast_model", 60.0, forecast_model),
    Periodic("spot", 60.0, spot),
    Periodic("contribution", 60.0, contribution),
    Periodic("site_jobs", 15.0, collect_site_jobs),
    Periodic("environment_checks", 60.0, check_environments),
    Periodic("dataset_checks", 300.0, verify_datasets),
    Periodic("dataset_copies", 15.0, copy_datasets),
    Periodic("volumes", 60.0, volumes),
    Periodic("recipes", 30.0, recipes),
    Periodic("clean_up", 3600.0, clean_up),
)


def _facts_are_known(context: Context, now: datetime) -> bool:
    return gate_checks.check(begin=context.begin, read=context.read, broker=context.broker, now=now)


def _ingest(context: Context, turn: accounting.Turn, base: float) -> None:
    def read(now: datetime) -> str | None:
        report = accounting.ingest(
            begin=context.begin,
            broker=context.broker,
            cluster=context.cluster,
            now=now,
            backfill=context.backfill,
            turn=turn,
        )
        if report.uncounted:
            log.error("accounting_count_differs", rows=report.rows, by=report.uncounted)
        return report.error_code

    _paced(context, turn.name, base, read)


def _reconcile(context: Context, *, recent: timedelta | None) -> None:
    report = reconciling.reconcile(
        begin=context.begin,
        broker=context.broker,
        cluster=context.cluster,
        now=context.clock(),
        recent=recent,
    )
    if report.asked:
        log.info("reconciled", asked=report.asked, still_open=report.still_open)


def _paced(
    context: Context, name: str, base: float, read: Callable[[datetime], str | None]
) -> None:
    """Read when it is due, and set the next interval by how it went."""
    now = context.clock()
    with context.read() as session:
        row = polls.get(session, name)
    current = max(row.interval_seconds or base, base)
    last = Last(
        began=row.tried_at,
        interval_seconds=current,
        wanted_at=row.wanted_at,
        took_seconds=context.took.get(name, 0.0),
        failed=name in context.failed,
    )
    if not is_due(last, now):
        return
    started = context.stopwatch()
    code = read(now)
    took = context.took[name] = context.stopwatch() - started
    (context.failed.add if code else context.failed.discard)(name)
    if code:
        log.warning("poll_failed", poll=name, code=code, seconds=round(took, 3))
    interval = next_interval(base, current, took=took, failed=code is not None)
    if interval != row.interval_seconds:
        with context.begin() as session:
            polls.set_interval(session, name, interval)
