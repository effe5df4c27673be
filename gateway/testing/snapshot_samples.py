"""Stores of snapshots for tests and the sample site: documents as the node kit writes them."""

import json
from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any

from gateway.core.access import Viewer
from gateway.services import snapshots
from gateway.store import people
from gateway.store.uow import Begin
from gateway.testing.fakebroker import FakeBroker
from gateway.testing.fakefiles import FakeFiles

BASE = {
    "name": "torch-2.13",
    "kind": "venv",
    "path": "/opt/envs/torch-2.13",
    "python": "3.11",
    "fingerprint": "b" * 64,
}


def fields(user: str, **changes: Any) -> dict[str, Any]:
    """A document's fields."""
    return {
        "format": 1,
        "user": user,
        "at": 1_780_000_000,
        "job": "17",
        "note": "",
        "parent": None,
        "base": BASE,
        "layers": [{"sha256": "a" * 64, "bytes": 21_000_000, "content": 70_000_000, "files": 900}],
        "added": ["flash_attn==2.8.3", "einops==0.8.1"],
        "lock": {
            "pip": ["torch==2.13.0", "flash_attn==2.8.3", "einops==0.8.1"],
            "conda": [],
            "records": "c" * 64,
        },
    } | changes


def keep(
    files: FakeFiles, user: str, documents: Sequence[dict[str, Any]], **line: Any
) -> list[str]:
    """Write a person's store; the ids. `line` changes the index."""
    store, ids, lines = f"/home/{user}/.sluice/snapshots", [], []
    files.add_folder(store, user)
    for one in documents:
        data = json.dumps(one, sort_keys=True, separators=(",", ":"))
        digest = sha256(data.encode()).hexdigest()
        files.write(f"{store}/documents/{digest}.json", user, data)
        lines.append(json.dumps({"id": digest, "reachable": True} | line))
        ids.append(digest)
    files.write(f"{store}/index.jsonl", user, "\n".join(lines) + "\n")
    return ids


def fill_snapshots(begin: Begin, broker: FakeBroker, *, now: datetime) -> None:
    """Stores of two people of nlp: own ones, one of the group, one that waits to be agreed to."""
    at = int(now.timestamp())
    long = [f"package_{number}=={number}.0" for number in range(40)]
    stores = {
        "nlp-1": [
            fields("nlp-1", at=at - 90_000, note="flash attention of our fork, for the 4090s"),
            fields("nlp-1", at=at - 7200, job="4711", added=long, base=BASE | {"name": "gone"}),
        ],
        "nlp-lead": [
            fields("nlp-lead", at=at - 200_000, note="tokenizers for the corpus"),
            fields("nlp-lead", at=at - 300_000, note="everything for evaluation", added=long),
        ],
    }
    for login, documents in stores.items():
        ids = keep(broker.files, login, documents)
        with begin() as session:
            person = people.by_login(session, login)
            assert person is not None
            member = people.memberships(session, person.unix_user)
        viewer = Viewer(
            person_id=person.id,
            session_id=0,
            login=login,
            unix_user=person.unix_user,
            display_name=person.display_name,
            role=person.role,
            groups=member.groups,
            leads=member.leads,
        )
        snapshots.refresh(viewer, begin=begin, broker=broker, now=now, area="", force=True)
        if login == "nlp-lead":
            snapshots.share(viewer, ids[0], to=member.groups[0], begin=begin)
            snapshots.share(viewer, ids[1], to="site", begin=begin)
