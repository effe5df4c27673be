"""Try an environment on a type of GPU, as a job of the portal; what came of it, and when."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import structlog

from gateway.core.access import Permission, Viewer
from gateway.core.ask import Ask
from gateway.core.env_check import TEMPLATE, BadCheck, Checked, dump_steps, read_check
from gateway.core.env_facts import NO_FACTS, dump_facts
from gateway.core.environments import Environment
from gateway.core.offer import GpuKind, Offer, PartitionChoice
from gateway.errors import BrokerRefused, Refused
from gateway.services import site_jobs, snapshots
from gateway.services.environment_publish import (
    Entry,
    entries,
    every_entry,
    fingerprint,
    may_publish,
)
from gateway.services.offer import offer as read_offer
from gateway.services.site_jobs import BadResult, Desk, Outcome
from gateway.services.submit import InvalidAsk
from gateway.store import environments as store
from gateway.store import site_jobs as rows
from gateway.store import snapshot
from gateway.store.environments import CheckRow
from gateway.store.site_jobs import SiteJobRow
from gateway.store.uow import Begin

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

log = structlog.get_logger(__name__)

KIND = "environment"
MINUTES = 15
CARDS = 2  # for a collective between cards
_A_TURN = 2
# One that could not even be sent is tried again by the clock only on the next day.
_AGAIN = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Cell:
    """A pair of the matrix: its newest check, and the newest job. `changed`: the environment is
    another than the one that was checked."""

    gpu_type: str
    check: CheckRow | None
    job: SiteJobRow | None
    changed: bool

    @property
    def open_job(self) -> SiteJobRow | None:
        return self.job if self.job is not None and self.job.state == "open" else None

    @property
    def not_sent(self) -> str | None:
        """Why the newest one could not even be sent."""
        if self.job is None or self.job.state != "failed":
            return None
        known = self.check is not None and self.check.site_job_id >= self.job.id
        return None if known else self.job.code


@dataclass(frozen=True, slots=True)
class Line:
    """An environment of the matrix."""

    entry: Entry
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Matrix:
    """Environments by GPU types; a type that is an empty word is a node without cards."""

    gpu_types: tuple[str, ...]
    lines: tuple[Line, ...]


def gpu_types(session: "Session") -> tuple[str, ...]:
    """Those of the nodes; where no node has a card, the empty word alone."""
    found = {node.gpu_type for node in snapshot.nodes(session) if node.gpu_type and node.gpus}
    return tuple(sorted(found)) or ("",)


def matrix(viewer: Viewer, *, begin: Begin, file: Sequence[Environment]) -> Matrix:
    """What this person may see of it; retired ones are left out."""
    with begin() as session:
        types = gpu_types(session)
        seen = [one for one in entries(viewer, session, file) if not one.is_retired]
        checks = store.newest_checks(session)
        newest = rows.newest(session, KIND)
    return Matrix(types, tuple(Line(one, _cells(one, types, checks, newest)) for one in seen))


def cells(entry: Entry, *, begin: Begin) -> tuple[Cell, ...]:
    """An environment's line of the matrix."""
    with begin() as session:
        types, checks = gpu_types(session), store.newest_checks(session)
        return _cells(entry, types, checks, rows.newest(session, KIND))


def start(
    entry: Entry, gpu_type: str, *, viewer: Viewer, desk: Desk, form_key: str, now: datetime
) -> int:
    """Send the check: the site job's id. As the service person where the site has one, else as an
    administrator or leader themselves.

    Refused `environment_not_yours`, `unknown_gpu_type`, `service_login_unknown`, `check_no_place`,
    and as `site_jobs.start` does.
    """
    if not may_check(viewer, entry):
        raise Refused("environment_not_yours")
    return _start(entry.environment, gpu_type, viewer, desk=desk, form_key=form_key, now=now)


def may_check(viewer: Viewer, entry: Entry) -> bool:
    """Administrators all; leaders the site's, too, and their groups' own."""
    if viewer.may(Permission.MANAGE_ENVIRONMENTS):
        return True
    group = entry.environment.group
    return may_publish(viewer, group) if group else bool(viewer.leads)


def start_due(*, desk: Desk, file: Sequence[Environment], every: timedelta, now: datetime) -> int:
    """Send the checks that are due as the service person: never checked, changed since, or older
    than `every`; a few a turn. How many were sent."""
    sent = 0
    for environment, gpu_type in _due(desk=desk, file=file, every=every, now=now):
        key = secrets.token_hex(16)
        try:
            _start(environment, gpu_type, None, desk=desk, form_key=key, now=now)
        except (InvalidAsk, Refused, BrokerRefused) as no:
            log.warning(
                "check_not_sent", environment=environment.name, gpu_type=gpu_type, code=no.code
            )
            if no.code == "site_jobs_full":
                break
            continue
        sent += 1
        if sent == _A_TURN:
            break
    return sent


def finish(session: "Session", job: SiteJobRow, outcome: Outcome, now: datetime) -> None:
    """The row of the matrix, once. BadResult where the job wrote something else."""
    try:
        told = None if outcome.code is not None else read_check(outcome.result)
    except BadCheck as bad:
        raise BadResult(str(bad)) from bad
    found = told or Checked(NO_FACTS, "", "", "", (), 0.0)
    failed = None if found.ok else "check_failed"
    environment = str(job.facts["environment"])
    if found.base:
        snapshots.note_base(session, environment, found.base, now=now)
    store.add_check(
        session,
        CheckRow(
            environment=environment,
            gpu_type=str(job.facts["gpu_type"]),
            site_job_id=job.id,
            at=now,
            ok=found.ok,
            code=outcome.code or failed,
            fingerprint=str(job.facts["fingerprint"]),
            driver=found.driver,
            capability=found.capability,
            seconds=found.seconds,
            found=dump_facts(found.found),
            steps=[*dump_steps(found.steps)],
        ),
    )


def _start(
    environment: Environment,
    gpu_type: str,
    viewer: Viewer | None,
    *,
    desk: Desk,
    form_key: str,
    now: datetime,
) -> int:
    sender = site_jobs.sender(desk, viewer)
    with desk.read() as session:
        if gpu_type not in gpu_types(session):
            raise Refused("unknown_gpu_type", field="gpu_type")
    ask = _ask(environment, gpu_type, read_offer(sender, begin=desk.read))
    return site_jobs.start(
        KIND,
        _subject(environment.name, gpu_type),
        ask,
        form_key=form_key,
        viewer=sender,
        desk=desk,
        now=now,
        environments=(environment,),
        facts={
            "environment": environment.name,
            "gpu_type": gpu_type,
            "fingerprint": fingerprint(environment),
        },
    )


def _due(
    *, desk: Desk, file: Sequence[Environment], every: timedelta, now: datetime
) -> list[tuple[Environment, str]]:
    with desk.read() as session:
        types = gpu_types(session)
        listed = [one for one in every_entry(session, file) if not one.is_retired]
        checks, newest = store.newest_checks(session), rows.newest(session, KIND)
    due = []
    for one in listed:
        environment = one.environment
        for cell in _cells(one, types, checks, newest):
            lately = cell.job is not None and now - cell.job.created_at < _AGAIN
            old = cell.check is None or cell.changed or now - cell.check.at > every
            if old and cell.open_job is None and not (cell.not_sent and lately):
                due.append((environment, cell.gpu_type))
    return due


def _cells(
    entry: Entry,
    types: Sequence[str],
    checks: Mapping[tuple[str, str], CheckRow],
    newest: Mapping[str, SiteJobRow],
) -> tuple[Cell, ...]:
    name, now = entry.environment.name, fingerprint(entry.environment)
    made = []
    for gpu_type in types:
        check = checks.get((name, gpu_type))
        changed = check is not None and check.fingerprint != now
        made.append(Cell(gpu_type, check, newest.get(_subject(name, gpu_type)), changed))
    return tuple(made)


def _subject(name: str, gpu_type: str) -> str:
    return f"{name}@{gpu_type}"


def _ask(environment: Environment, gpu_type: str, offer: Offer) -> Ask:
    """The form of the check, where this person may run such cards. Refused `check_no_place`."""
    places = [
        (group.name, partition, kind)
        for group in sorted(offer.groups, key=lambda one: not one.is_default)
        if not group.leaving
        for partition in group.partitions
        for kind in _kinds(partition, gpu_type)
        if partition.is_up and partition.qos
    ]
    if not places:
        raise Refused("check_no_place", gpu_type=gpu_type or "CPU", login=offer.user)
    # The partition with the shortest limit that is enough is the one that is meant for trials.
    group, partition, kind = min(places, key=lambda one: one[1].max_minutes or 1 << 30)
    packages = [name for name in environment.facts.versions if name not in {"python", "cuda"}]
    qos = partition.find_qos("normal") or partition.default_qos
    if any(one.is_default for one in partition.qos):
        qos = partition.default_qos
    return Ask(
        template=TEMPLATE,
        group=group,
        partition=partition.name,
        qos=qos.name if qos else "",
        nodes="1",
        nproc_per_node="2",
        time_limit=str(MINUTES),
        name=f"check-{environment.name}",
        working_directory="~",
        environment=environment.name,
        gpu_type=gpu_type,
        values={
            "packages": " ".join(packages),
            "gpus_per_node": str(min(CARDS, kind.per_node) if kind else 0),
        },
    )


def _kinds(partition: PartitionChoice, gpu_type: str) -> list[GpuKind | None]:
    """The cards of this type there; None stands for none at all, where none is asked for."""
    if (partition.max_minutes or MINUTES) < MINUTES:
        return []
    if not gpu_type:
        return [None]
    return [kind for kind in partition.gpus if kind.name == gpu_type]
