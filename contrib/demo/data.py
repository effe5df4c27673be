"""Three small real datasets of the demo: made on the cluster, published in its catalogue."""

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from gateway.brokerclient.client import SocketBroker
from gateway.brokerclient.port import Broker
from gateway.config import load_settings
from gateway.errors import NotFound
from gateway.services import dataset_catalogue, dataset_entries, dataset_versions
from gateway.services.dataset_entries import Entry
from gateway.services.dataset_versions import NewVersion
from gateway.store import people
from gateway.store.uow import Begin, make_begin, make_engine

PLACE = "/datasets"  # as all nodes of the development cluster see it
KIT = "/opt/sluice/kit"
RULES = Path(__file__).with_name("made_data.py")
MANIFESTS = """\
set -e
for folder in "$1"/*/v1; do
  [ -e "$folder.manifest" ] || python3 -m sluice_train.data manifest "$folder"
  chmod 644 "$folder.manifest"
done
"""

# How a command runs on the cluster as root: its words, what it reads; what it did.
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@dataclass(frozen=True, slots=True)
class Shown:
    """What the catalogue says of one. The licence is this project's own."""

    name: str
    title: str
    description: str


SHOWN = (
    Shown(
        "sentences",
        "Sentences from a small grammar",
        "20,000 English sentences in four parts to learn from and one to check with.",
    ),
    Shown(
        "waves",
        "Pictures of stripes and rings",
        "400 pictures of 32 x 32 in eight classes, by formulas; classes.csv names each one's.",
    ),
    Shown(
        "sensors",
        "A day of twelve sensors",
        "Temperature and humidity a minute, with faults to find, as tables (CSV).",
    ),
)


def set_up(environment: dict[str, str], run: Run, *, owner: str) -> None:
    """Safe to call again: what is there stays, and what the cluster has lost is made anew, byte by
    byte the same."""
    settings = load_settings(environment)
    engine = make_engine(settings.database_url)
    try:
        broker = SocketBroker(settings.broker_socket, timeout_seconds=30)
        fill(run, owner=owner, begin=make_begin(engine), broker=broker)
    finally:
        engine.dispose()


def fill(run: Run, *, owner: str, begin: Begin, broker: Broker) -> None:
    """Make them on the cluster, and publish them; `owner` is a login of the portal."""
    _made(run(["python3", "-", PLACE], stdin=RULES.read_text()))
    _made(run(["env", f"PYTHONPATH={KIT}", "bash", "-c", MANIFESTS, "manifests", PLACE]))
    for one in SHOWN:
        text = _made(run(["cat", f"{PLACE}/{one.name}/v1.manifest"]))
        _publish(one, text, owner=owner, begin=begin, broker=broker)


def _publish(one: Shown, manifest: str, *, owner: str, begin: Begin, broker: Broker) -> None:
    """Version 1, for everyone; left alone where it has been published before."""
    now = datetime.now(UTC)
    with begin() as session:
        person = people.by_login(session, owner)
        try:
            there = dataset_catalogue.page(session, one.name, None).versions
        except NotFound:
            there = None
    if person is None:
        raise RuntimeError(f"No sample datasets: there is no person {owner}")
    if there is None:
        entry = Entry(one.title, "MIT", one.description, "everyone", None)
        dataset_entries.create(
            one.name, entry, owner_id=person.id, viewer=None, begin=begin, now=now
        )
    if not there:
        version = NewVersion(f"{PLACE}/{one.name}/v1", made_by="contrib/demo/made_data.py")
        dataset_versions.add(
            one.name, version, created_by=person.id, viewer=None, begin=begin, now=now
        )
    if not there or there[-1].state == "draft":
        dataset_versions.publish(
            one.name,
            1,
            viewer=None,
            begin=begin,
            now=now,
            broker=broker,
            totals=dataset_versions.totals_of(manifest),
        )


def _made(done: "subprocess.CompletedProcess[str]") -> str:
    if done.returncode != 0:
        raise RuntimeError(f"No sample datasets: {done.stderr.strip()}")
    return done.stdout
