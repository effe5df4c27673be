"""Is published data still what was published? Read by a job of the portal, kept as a report.

A verification that cannot be carried out is one that failed, and says so: it never makes damaged
data look good.
"""

import secrets
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import structlog

from gateway.core.access import Viewer
from gateway.core.datasets import Report, read_report
from gateway.errors import BrokerRefused, NotFound, Refused
from gateway.services import site_jobs
from gateway.services.dataset_entries import steered
from gateway.services.dataset_jobs import cpu_ask
from gateway.services.environments import NONE
from gateway.services.offer import offer as read_offer
from gateway.services.site_jobs import BadResult, Desk, Outcome
from gateway.services.submit import InvalidAsk
from gateway.store import dataset_faults, events
from gateway.store import dataset_work as work
from gateway.store import datasets as store
from gateway.store import site_jobs as rows
from gateway.store.datasets import DatasetRow, VersionRow
from gateway.store.site_jobs import SiteJobRow

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

log = structlog.get_logger(__name__)

TEMPLATE = "verify-dataset"
KIND, MANIFEST_KIND = "dataset", "dataset_manifest"
_A_TURN = 2
_AGAIN = timedelta(days=1)  # after one that could not be sent, or failed
_SLOW_MBPS = 50  # assumed where nobody has measured
_LEAST_MINUTES, _MOST_MINUTES = 10, 2 * 24 * 60


def start(
    name: str, number: int, *, viewer: Viewer, desk: Desk, form_key: str, now: datetime
) -> int:
    """Send a verification of a published version: the site job's id. As the service person where
    the site has one, else as who asks. Refused dataset_not_yours, dataset_state, dataset_no_place,
    and as `site_jobs.start` does."""
    row, version = _of(name, number, viewer=viewer, desk=desk)
    if version.manifest is None:
        raise Refused("dataset_state", state=version.state)
    return _start(row, version, viewer, desk=desk, form_key=form_key, now=now)


def make_manifest(
    name: str, number: int, *, viewer: Viewer, desk: Desk, form_key: str, now: datetime
) -> int:
    """Send a job that makes the manifest, as who asks: the file becomes theirs."""
    row, version = _of(name, number, viewer=viewer, desk=desk)
    if version.state != "draft":
        raise Refused("dataset_state", state=version.state)
    values = {"task": "manifest", "folder": version.path, "manifest": version.manifest_path}
    ask = cpu_ask(
        TEMPLATE,
        read_offer(viewer, begin=desk.read),
        name=f"manifest-{row.name}"[:64],
        minutes=_MOST_MINUTES,
        values=values,
    )
    return site_jobs.start(
        MANIFEST_KIND,
        f"{row.name}@{number}",
        ask,
        form_key=form_key,
        viewer=viewer,
        desk=desk,
        now=now,
        environments=(NONE,),
        facts={"version_id": version.id},
    )


def start_due(*, desk: Desk, every: timedelta, now: datetime) -> int:
    """Send what is due as the service person, a few a turn; how many were sent."""
    with desk.read() as session:
        due = work.due_for_check(session, before=now - every, limit=500)
        named = {one.id: store.get(session, one.dataset_id) for one in due}
        newest = rows.newest(session, KIND)
    sent = 0
    for version in due:
        row = named[version.id]
        if row is None or _tried(newest.get(f"{row.name}@{version.version}"), now):
            continue
        key = secrets.token_hex(16)
        try:
            _start(row, version, None, desk=desk, form_key=key, now=now)
        except (InvalidAsk, Refused, BrokerRefused) as no:
            log.warning("dataset_not_verified", dataset=row.name, code=no.code)
            continue
        sent += 1
        if sent == _A_TURN:
            break
    return sent


def finish(session: "Session", job: SiteJobRow, outcome: Outcome, now: datetime) -> None:
    """The report, and what it says of the version; once. BadResult where the job wrote another."""
    version = store.version(session, int(job.facts["version_id"]))
    if version is None:
        return
    health, mbps = "failed", None
    facts: dict[str, Any] = {"error": outcome.code or ""}
    if outcome.code is None:
        report = _report(outcome, version)
        health, facts, mbps = report.health, dict(outcome.result), report.mbps
    check = {"version_id": version.id, "site_job": job.id, "at": now}
    work.add_check(session, check | {"health": health, "facts": facts})
    values: dict[str, Any] = {"read_mbps": mbps} if mbps else {}
    if health != "failed":
        values["checked_at"] = now  # else nobody has looked, and it stays due
    if health != "failed" or version.health != "damaged":
        values["health"] = health
    store.change_version(session, version.id, **values)
    if health == "damaged":
        _tell_readers(session, version, now)


def _tell_readers(session: "Session", version: VersionRow, now: datetime) -> None:
    """In the histories of jobs under which the files may have changed."""
    row = store.get(session, version.dataset_id)
    word = f"{row.name}@{version.version}" if row else ""
    for submission_id in dataset_faults.running_with(session, version.id):
        told = {"about": word}
        events.add(session, "dataset_damaged", at=now, submission_id=submission_id, detail=told)


def finish_manifest(session: "Session", job: SiteJobRow, outcome: Outcome, now: datetime) -> None:  # noqa: ARG001
    """What the manifest says of a draft; publishing reads the file again where it can."""
    if outcome.code is not None:
        return
    found = outcome.result
    sha256, size, files = (found.get(name) for name in ("sha256", "bytes", "files"))
    if not isinstance(sha256, str) or not isinstance(size, int) or not isinstance(files, int):
        raise BadResult("no manifest")
    values = {"manifest": sha256[:64], "bytes": size, "files": files}
    store.change_version(session, int(job.facts["version_id"]), leaving=("draft",), **values)


def _report(outcome: Outcome, version: VersionRow) -> Report:
    try:
        report = read_report(outcome.result)
    except ValueError as bad:
        raise BadResult(str(bad)) from bad
    if report.manifest != version.manifest:
        raise BadResult("the report is of another manifest")
    return report


def _of(name: str, number: int, *, viewer: Viewer, desk: Desk) -> tuple[DatasetRow, VersionRow]:
    with desk.read() as session:
        row = steered(session, name, viewer)
        for one in store.versions(session, [row.id]):
            if one.version == number:
                return row, one
    raise NotFound(f"version {number} of {name}")


def _start(
    row: DatasetRow,
    version: VersionRow,
    viewer: Viewer | None,
    *,
    desk: Desk,
    form_key: str,
    now: datetime,
) -> int:
    sender = site_jobs.sender(desk, viewer)
    values = {
        "task": "verify",
        "folder": version.path,
        "manifest": version.manifest_path,
        "sha256": version.manifest or "",
    }
    ask = cpu_ask(
        TEMPLATE,
        read_offer(sender, begin=desk.read),
        name=f"verify-{row.name}"[:64],
        minutes=_minutes(version),
        values=values,
    )
    return site_jobs.start(
        KIND,
        f"{row.name}@{version.version}",
        ask,
        form_key=form_key,
        viewer=sender,
        desk=desk,
        now=now,
        environments=(NONE,),
        facts={"version_id": version.id},
    )


def _minutes(version: VersionRow) -> int:
    """Twice what reading should take."""
    speed = max(version.read_mbps or _SLOW_MBPS, 1.0) * 1e6
    need = int(2 * (version.bytes or 0) / speed / 60)
    return max(_LEAST_MINUTES, min(need, _MOST_MINUTES))


def _tried(job: SiteJobRow | None, now: datetime) -> bool:
    return job is not None and (job.state == "open" or now - job.created_at < _AGAIN)
