"""A catalogue of datasets for the sample site and for tests."""

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import select

from gateway.store import dataset_models as dm
from gateway.store.models import Submission
from gateway.store.uow import Begin
from gateway.testing.fakebroker import FakeBroker
from gateway.testing.fakefiles import EVERYONES


@dataclass(frozen=True, slots=True)
class Sample:
    name: str
    title: str
    licence: str
    visibility: str
    group: str | None
    mbps: float | None
    health: str = "good"


SAMPLES = (
    Sample("licences", "Texts of free licences", "CC0-1.0", "everyone", None, 1430.0),
    Sample(
        "waves", "Pictures of waves by a formula", "CC0-1.0", "everyone", None, 610.0, "damaged"
    ),
    Sample("clinic-notes", "Notes of a clinic", "on request", "listed", "biolab", None, "unknown"),
    Sample("nlp-clean", "A cleaned subset", "CC-BY-4.0", "groups", "nlp", 980.0),
)


def manifest_of(count: int = 3) -> str:
    """A manifest of `count` files of a kilobyte each."""
    lines = [
        f"{hashlib.sha256(str(n).encode()).hexdigest()} 1000 part-{n:03}" for n in range(count)
    ]
    return "".join(f"{line}\n" for line in lines)


def add_dataset(begin: Begin, owner_id: int, name: str = "licences", **values: Any) -> int:
    """An entry for everyone."""
    facts: dict[str, Any] = {"title": name.capitalize(), "licence": "CC0-1.0", "description": ""}
    facts |= {"visibility": "everyone", "group": None}
    with begin() as session:
        row = dm.Dataset(name=name, owner_id=owner_id, **(facts | values))
        session.add(row)
        session.flush()
        return row.id


def add_version(begin: Begin, dataset_id: int, owner_id: int, **values: Any) -> int:
    """A published version 1 in /datasets/<id>; its id."""
    text = manifest_of()
    path = f"/datasets/{dataset_id}"
    facts = {
        "version": 1,
        "path": path,
        "manifest_path": f"{path}.manifest",
        "state": "published",
        "bytes": 3000,
        "files": 3,
        "manifest": hashlib.sha256(text.encode()).hexdigest(),
        "note": "",
        "made_by": "",
        "withdrawn_why": "",
        "health": "unknown",
        "created_by": owner_id,
    }
    with begin() as session:
        row = dm.DatasetVersion(dataset_id=dataset_id, **(facts | values))
        session.add(row)
        session.flush()
        return row.id


def add_folder(broker: FakeBroker, path: str, text: str = "") -> None:
    """Data that all may read and nobody may write, with its manifest beside it."""
    broker.files.add_folder("/datasets", EVERYONES)
    broker.files.add_folder(path, EVERYONES)
    broker.files.write(f"{path}.manifest", EVERYONES, text or manifest_of())


def fill_datasets(begin: Begin, broker: FakeBroker, owner_id: int, *, now: datetime) -> None:
    """SAMPLES, each with a version, one with its lineage."""
    parent = None
    for number, one in enumerate(SAMPLES):
        facts = {"title": one.title, "licence": one.licence, "visibility": one.visibility}
        when = {"created_at": now - timedelta(days=40 - number)}
        dataset_id = add_dataset(begin, owner_id, one.name, **facts, **when, group=one.group)
        path = f"/datasets/{one.name}/v1"
        add_folder(broker, path)
        lineage = {"parent_id": parent, "made_by": "recipe dedup" if parent else ""}
        version_id = add_version(
            begin,
            dataset_id,
            owner_id,
            path=path,
            manifest_path=f"{path}.manifest",
            published_at=now - timedelta(days=30),
            bytes=12_300_000_000 * (number + 1),
            files=1200 * (number + 1),
            health=one.health,
            read_mbps=one.mbps,
            checked_at=now - timedelta(days=2) if one.mbps else None,
            **when,
            **(lineage if one.name == "nlp-clean" else {}),
        )
        parent = parent or version_id
        if one.health == "damaged":
            _found_damaged(begin, version_id, now - timedelta(days=2))
    _used(begin)


def _found_damaged(begin: Begin, version_id: int, at: datetime) -> None:
    report = {
        "changed": ["train/part-007", "train/part-019"],
        "missing": ["labels.csv"],
        "extra": [],
        "counts": {"changed": 2, "missing": 1, "extra": 0},
        "files": 2400,
        "bytes_read": 24_500_000_000,
        "seconds": 40.2,
        "writable": False,
        "error": "",
        "manifest": "0" * 64,
    }
    facts = {"version_id": version_id, "site_job": None, "at": at}
    with begin() as session:
        session.add(dm.DatasetCheck(**facts, health="damaged", facts=report))


def _used(begin: Begin) -> None:
    """The first two by the submissions that are there."""
    with begin() as session:
        sent = session.scalars(select(Submission.id).where(Submission.job_id.is_not(None)).limit(9))
        for number, submission_id in enumerate(sent.all()):
            session.add(dm.DatasetUse(submission_id=submission_id, version_id=1 + number % 2))
