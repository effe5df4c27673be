"""A person works in a volume on a real cluster: chosen in the form, filled, stopped, grown."""

import shlex
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from broker_fixture import ClusterSite

from gateway.brokerclient.client import SocketBroker
from gateway.config import load_settings
from gateway.services import volume_entries as entries
from gateway.services import volume_read
from gateway.services.volume_entries import Wish
from gateway.store import volumes as store
from gateway.store.models import Job
from gateway.store.uow import make_begin
from gateway.testing import builders as b
from gateway.testing.database import database
from gateway.testing.portal import CLUSTER, Portal, portal
from gateway.web.app import create_app
from tests.web.conftest import Browser

pytestmark = pytest.mark.slurm
MB = 2**20


class Site:
    """A portal with its pages on the real cluster, and a volume of nlp of 100 MB."""

    def __init__(self, made: Portal, folder: Path) -> None:
        self.portal = made
        settings = load_settings({"SLUICE_HOME": str(folder), "SLUICE_CLUSTER_NAME": CLUSTER})
        self.app = create_app(
            settings, begin=made.begin, read=made.begin, broker=made.broker, clock=self.now
        )
        b.add_person(made.begin, "nlp-lead")
        b.add_person(made.begin, "boss", role="administrator")
        self.given = {"begin": made.begin, "broker": made.broker, "now": self.now()}
        volume_read.look(**self.given, zone=UTC)
        wish = Wish("volumes", f"j{time.time_ns():x}", "nlp", 100 * MB)
        self.volume = entries.create(wish, viewer=None, **self.given)

    def now(self) -> datetime:
        return datetime.now(UTC)

    def browser(self, login: str) -> Browser:
        browser = Browser(self.app.test_client())
        sent = browser.post("/sign-in", {"login": login, "password": b.PASSWORD})
        assert sent.status_code == 303
        return browser

    def used(self) -> int:
        with self.portal.begin() as session:
            found = store.get(session, self.volume.id)
        assert found is not None
        return found.used_bytes or 0

    def ended(self, name: str) -> Job:
        end = time.monotonic() + 120
        while True:
            self.portal.deliver_due()
            self.portal.work()
            job = next((one for one in self.portal.jobs() if one.name == name), None)
            runs = [] if job is None else [r for r in self.portal.runs() if r.job_id == job.id]
            if job is not None and not job.active and runs:
                return job
            assert time.monotonic() < end, job and (job.state, job.reason)
            time.sleep(0.5)


@pytest.fixture
def site(tmp_path: Path, broker: SocketBroker, cluster_site: ClusterSite) -> Iterator[Site]:
    area = next(one for one in broker.volumes().areas if one.name == "volumes")
    if area.problem is not None:
        pytest.skip("no loop-mounted Btrfs here: it takes loop devices and the kernel's Btrfs")
    with database(tmp_path) as engine:
        made = portal(make_begin(engine), broker=broker, clock=lambda: datetime.now(UTC))
        yield Site(made, tmp_path)


def submitted(site: Site, browser: Browser, name: str, command: str) -> Job:
    """By the form, with the volume as it is offered there."""
    page = browser.get("/submit").text
    assert f'<option value="{site.volume.path}">' in page
    sent = browser.post(
        "/submit",
        {
            "form_key": name, "template": "command", "shown_template": "command", "group": "nlp",
            "partition": "debug", "qos": "normal", "nodes": "1", "nproc_per_node": "1",
            "time_limit": "5", "name": name, "working_directory": site.volume.path,
            "environment": "none", "v-command": command, "v-gpus_per_node": "0",
        },
    )  # fmt: skip
    assert sent.status_code == 303, sent.text
    return site.ended(name)


def writes(name: str, megabytes: int) -> str:
    """What cannot be compressed, synced, so that the file system counts it."""
    words = ["dd", "if=/dev/urandom", f"of={name}", "bs=1M", f"count={megabytes}", "conv=fsync"]
    return shlex.join(words)


@pytest.mark.timeout(300)
def test_a_job_fills_the_volume_is_told_what_to_do_and_runs_when_there_is_more(site: Site) -> None:
    member = site.browser("nlp-1")
    assert submitted(site, member, "fits", writes("part-1", 40)).state == "COMPLETED"
    volume_read.look(**site.given, zone=UTC)
    assert 40 * MB <= site.used() < 60 * MB
    assert "40" in member.get(f"/volumes/{site.volume.id}").text

    failed = submitted(site, member, "too-much", writes("part-2", 100))
    assert failed.state == "FAILED"
    later = site.given | {"now": site.now() + timedelta(minutes=3)}
    report = volume_read.look_when_due(**later, zone=UTC)
    assert report is not None
    assert report.code is None
    page = member.get(f"/jobs/{failed.id}").text.replace("\xa0", " ")
    assert "It failed, and its volume is" in page
    assert f'href="/volumes/{site.volume.id}">Ask for more' in page
    # Its output lies there as well, so what dd said of the quota is lost: the page must say it.
    assert "its last output included" in page

    _grow(site, member)
    assert submitted(site, member, "again", writes("part-2", 100)).state == "COMPLETED"
    volume_read.look(**later, zone=UTC)
    assert site.used() >= 140 * MB

    # Less than that is asked about, and what stands there is left alone.
    boss = site.browser("boss")
    low = boss.post(f"/volumes/{site.volume.id}/limit", {"size": "50 MB", "text": ""})
    assert low.status_code == 422
    assert "Tick that this is meant" in low.text
    found = [one for one in site.portal.broker.volumes().volumes if one.name == site.volume.name]
    assert [one.limit_bytes for one in found] == [300 * MB]


def _grow(site: Site, member: Browser) -> None:
    """Asked for by a member, agreed to by the leader, written and read back."""
    entries.set_cap("nlp", 300 * MB, viewer=None, begin=site.portal.begin)
    asked = member.post(f"/volumes/{site.volume.id}/request", {"size": "300 MB", "text": "part 2"})
    assert asked.status_code == 303
    done = site.browser("nlp-lead").post("/volume-requests/1/agree", {}, follow_redirects=True)
    assert "Done, and read back: done: 100 MB → 300 MB" in done.text.replace("\xa0", " ")
