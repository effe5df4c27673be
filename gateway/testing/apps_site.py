"""An application of a person that runs and is ready, over FakeBroker: what its node would have
written is written here."""

import json
from dataclasses import dataclass
from typing import Any

from gateway.core.apps import ready_path, state_path
from gateway.services import apps
from gateway.store import apps as store
from gateway.store.apps import AppRow
from gateway.testing.portal import ask

KEY = "A" * 43
NOTEBOOK: dict[str, Any] = {
    "template": "notebook",
    "nodes": "1",
    "nproc_per_node": "1",
    "time_limit": "480",
    "name": "notebook",
    "values": {"gpus_per_node": "1"},
}


@dataclass(frozen=True, slots=True)
class OpenApp:
    submission_id: int
    slurm_id: int


def open_app(site: Any, *, port: int, key: str = KEY, **changes: Any) -> OpenApp:
    """Submitted by the site's own viewer, started, ready at a port of this machine."""
    given = NOTEBOOK | changes
    submission_id = site.portal.submit(ask(**given), key=f"app-{port}")
    site.broker.advance(2)
    site.look()
    row = row_of(site, submission_id)
    assert row.slurm_id is not None
    write_ready(site, row.slurm_id, port=port, key=key)
    have = site.app.extensions["sluice"]
    apps.look(row, begin=have.begin, read=have.read, broker=have.broker)
    return OpenApp(submission_id, row.slurm_id)


def write_ready(site: Any, slurm_id: int, **changes: Any) -> None:
    """The file by which the node says where the application is."""
    facts = {
        "address": "127.0.0.1",
        "key": KEY,
        "pid": 7,
        "at": site.broker.now.timestamp(),
    }
    user = site.portal.viewer.unix_user
    path = ready_path(f"/home/{user}", slurm_id)
    site.broker.files.write(path, user, json.dumps(facts | changes))


def write_state(site: Any, slurm_id: int, **facts: Any) -> None:
    """And how it does."""
    user = site.portal.viewer.unix_user
    told = {"at": site.broker.now.timestamp(), "phase": "ready"} | facts
    site.broker.files.write(state_path(f"/home/{user}", slurm_id), user, json.dumps(told))


def row_of(site: Any, submission_id: int) -> AppRow:
    with site.begin() as session:
        row = store.get(session, submission_id)
    assert row is not None
    return row
