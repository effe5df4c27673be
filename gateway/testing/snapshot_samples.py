"""Stores of snapshots for tests and the sample site: documents as the node kit writes them."""

import json
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

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
