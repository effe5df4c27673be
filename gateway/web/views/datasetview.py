"""What the pages of datasets show: sizes, states and reports in words."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gateway.core.datasets import MOST_TOLD
from gateway.services.dataset_catalogue import Card, Page
from gateway.store.dataset_work import CheckRow
from gateway.store.datasets import VersionRow
from gateway.store.site_jobs import SiteJobRow
from gateway.web.dataset_texts import HEALTH_WORDS, STATE_WORDS
from gateway.web.messages import TEXTS, sentence
from gateway.web.texts import gettext

_UNITS = (("PB", 10**15), ("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3))


@dataclass(frozen=True, slots=True)
class VersionView:
    row: VersionRow
    word: str
    state: str
    health_kind: str
    health: str
    parent: str | None
    children: list[str]
    open_job: int | None  # of the portal's job page, while one verifies it
    is_checked: bool
    not_sent: str


@dataclass(frozen=True, slots=True)
class ReportView:
    """A verification that ended. `lists`: kind in words, how many, and the first of them."""

    row: CheckRow
    version: int
    kind: str
    word: str
    mbps: float | None
    lists: list[tuple[str, int, list[str]]]
    error: str


def size(count: int | None) -> str:
    """Bytes in powers of ten, as disks are sold."""
    if count is None:
        return "–"
    for unit, least in _UNITS:
        if count >= least:
            return f"{count / least:.1f} {unit}"
    return f"{count} B"


def speed(mbps: float | None) -> str:
    return "–" if mbps is None else f"{mbps:,.0f} MB/s"


def versions(page: Page, jobs: Mapping[str, SiteJobRow]) -> list[VersionView]:
    """`jobs`: the newest verification of each, by name and version."""
    return [_version(page, one, jobs) for one in page.versions]


def _version(page: Page, one: VersionRow, jobs: Mapping[str, SiteJobRow]) -> VersionView:
    word = f"{page.card.row.name}@{one.version}"
    kind, health = HEALTH_WORDS[one.health]
    job = jobs.get(word)
    running = job is not None and job.state == "open"
    told = {check.site_job for check in page.checks}
    lost = job is not None and job.state == "failed" and job.id not in told
    return VersionView(
        one,
        word,
        str(STATE_WORDS[one.state]),
        kind,
        str(health),
        page.lineage[one.id].parent,
        list(page.lineage[one.id].children),
        job.job_id if running and job else None,
        running,
        _why(job.code) if lost and job else "",
    )


def reports(page: Page) -> list[ReportView]:
    numbers = {one.id: one.version for one in page.versions}
    return [_report(one, numbers[one.version_id]) for one in page.checks]


def _report(row: CheckRow, version: int) -> ReportView:
    kind, word = HEALTH_WORDS[row.health]
    facts = row.facts
    seconds, read = facts.get("seconds") or 0, facts.get("bytes_read") or 0
    return ReportView(
        row,
        version,
        kind,
        str(word),
        read / seconds / 1e6 if seconds and read else None,
        _lists(facts),
        _why(str(facts.get("error") or "")),
    )


def _lists(facts: Mapping[str, Any]) -> list[tuple[str, int, list[str]]]:
    words = {
        "changed": gettext("changed"),
        "missing": gettext("missing"),
        "extra": gettext("not in the manifest"),
    }
    counts = facts.get("counts") or {}
    return [
        (word, counts[kind], [str(path) for path in facts.get(kind, [])][:MOST_TOLD])
        for kind, word in words.items()
        if counts.get(kind)
    ]


def _why(code: str | None) -> str:
    """A code of ours in words; what a node said stands as it is."""
    if not code:
        return ""
    return sentence(code) if code in TEXTS else code


def facts_of(card: Card) -> dict[str, Any]:
    """For the API."""
    row, newest = card.row, card.newest
    return {
        "name": row.name,
        "title": row.title,
        "licence": row.licence,
        "description": row.description,
        "visibility": row.visibility,
        "group": row.group,
        "usable": card.usable,
        "newest": version_facts(newest, usable=card.usable) if newest else None,
        "jobs": card.jobs,
        "people": card.people,
        "card_seconds": sum(one.card_seconds for one in card.usage),
    }


def version_facts(one: VersionRow, *, usable: bool) -> dict[str, Any]:
    """Where it lies only for who may use it."""
    return {
        "version": one.version,
        "state": one.state,
        "path": one.path if usable else None,
        "bytes": one.bytes,
        "files": one.files,
        "manifest": one.manifest,
        "note": one.note,
        "made_by": one.made_by,
        "health": one.health,
        "checked_at": one.checked_at.isoformat() if one.checked_at else None,
        "read_mbps": one.read_mbps,
        "published_at": one.published_at.isoformat() if one.published_at else None,
    }
