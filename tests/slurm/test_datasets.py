"""A dataset on a real Slurm: published, read by a job from its nodes' own copies, verified."""

import json
import shlex
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from contrib.demo import data
from gateway.core.access import Role
from gateway.core.ask import Ask
from gateway.core.datasets import read_report
from gateway.services import dataset_entries, dataset_verify, dataset_versions, site_jobs
from gateway.services.dataset_entries import Entry
from gateway.services.dataset_versions import NewVersion
from gateway.services.site_kinds import KINDS
from gateway.services.submit import InvalidAsk
from gateway.store import dataset_work, datasets
from gateway.store.uow import make_begin
from gateway.testing import builders as b
from gateway.testing.database import database
from gateway.testing.portal import CLUSTER, Portal, portal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from contrib.devcluster.instance import Instance
    from gateway.brokerclient.client import SocketBroker

pytestmark = pytest.mark.slurm

MAKE = """
rm -rf /datasets/words && mkdir -p /datasets/words/deep
for n in $(seq 20); do head -c 100000 /dev/urandom >/datasets/words/deep/$n; done
printf 'one\\n' >/datasets/words/first
PYTHONPATH=/opt/sluice/kit python3 -m sluice_train.data manifest /datasets/words
chmod -R a+rX /datasets
"""
LOOK = "import os; f = os.environ['SLUICE_DATASETS']; print('sees', f, open(f + '/first').read())"


@pytest.fixture
def site(tmp_path: "Path", broker: "SocketBroker", cluster: "Instance") -> "Iterator[Portal]":
    made = cluster.run(["bash", "-c", MAKE])
    assert made.returncode == 0, made.stderr
    with database(tmp_path) as engine:
        yield portal(make_begin(engine), broker=broker, clock=lambda: datetime.now(UTC))


def published(site: Portal) -> None:
    """As its leader, who reads the manifest through the broker."""
    leader = b.viewer("nlp-1", person_id=site.viewer.person_id, groups=("nlp",), leads=("nlp",))
    who = {"viewer": leader, "begin": site.begin, "now": site.now}
    entry = Entry("Words", "CC0-1.0", "", "everyone", "nlp")
    dataset_entries.create("words", entry, owner_id=leader.person_id, **who)
    dataset_versions.add("words", NewVersion("/datasets/words"), created_by=leader.person_id, **who)
    assert dataset_versions.publish("words", 1, broker=site.broker, **who) == "published"


def ask(**values: str) -> Ask:
    command = f"python3 -c {shlex.quote(LOOK)}"
    return Ask(
        template="command",
        group="nlp",
        partition="a100",
        qos="normal",
        nodes="1",
        nproc_per_node="1",
        time_limit="5",
        name="reads",
        working_directory="~",
        values={"command": command, "gpus_per_node": "0", **values},
    )


def output(site: Portal, cluster: "Instance", submission: int, seconds: float = 120) -> str:
    end = time.monotonic() + seconds
    while True:
        site.poll()
        site.ingest()
        job = site.submission(submission).job_id
        row = next((one for one in site.jobs() if one.id == job), None)
        if row is not None and not row.active and row.output:
            return cluster.run(["cat", row.output]).stdout
        assert time.monotonic() < end, row and row.state
        time.sleep(1)


def test_a_job_reads_it_from_its_nodes_own_copy(site: Portal, cluster: "Instance") -> None:
    published(site)
    said = output(site, cluster, site.submit(ask(datasets="words"), key="shared"))
    assert "sees /datasets/words one" in said, said

    wanted = ask(datasets="words", stage_datasets="true")
    said = output(site, cluster, site.submit(wanted, key="staged"))
    with site.begin() as session:
        sha256 = datasets.offered(session, site.viewer)[0].manifest
    assert "21 of 21 files" in said, said
    assert f"/datasets/{sha256} one" in said, said


COUNT = (
    "import os, pathlib; folder = pathlib.Path(os.environ['SLUICE_DATASETS']);"
    " files = [one.split(',')[0] for one in (folder / 'classes.csv').read_text().split()[1:]];"
    " print('counts', len(files), {(folder / one).stat().st_size for one in files},"
    " os.access(folder, os.W_OK))"
)


def test_the_datasets_of_the_demo_are_published_once_and_read_by_a_job(
    site: Portal, cluster: "Instance"
) -> None:
    for _ in range(2):
        data.fill(cluster.run, owner="nlp-1", begin=site.begin, broker=site.broker)
    with site.begin() as session:
        offered = datasets.offered(session, site.viewer)
    assert [one.word for one in offered] == ["sensors@1", "sentences@1", "waves@1"]
    assert [one.files for one in offered] == [12, 5, 401]
    command = f"python3 -c {shlex.quote(COUNT)}"
    wanted = ask(datasets="waves", command=command)
    said = output(site, cluster, site.submit(wanted, key="demo"))
    assert "counts 400 {3085} False" in said, said


def test_a_copy_that_the_person_can_write_is_refused(site: Portal, cluster: "Instance") -> None:
    cluster.run(["bash", "-c", "cp -r /datasets/words ~/words"], user="nlp-1")
    with pytest.raises(InvalidAsk) as refused:
        site.submit(ask(datasets="/home/nlp-1/words"))
    assert [one.code for one in refused.value.problems] == ["dataset_writable"]
    assert site.jobs() == []


def running(site: Portal) -> int:
    """A job that reads it and does not end by itself; its submission."""
    wanted = ask(datasets="words", command="sleep 600")
    submission = site.submit(replace(wanted, name="reads-on"), key="running")
    end = time.monotonic() + 60
    while True:
        site.poll()
        row = next((one for one in site.jobs() if one.name == "reads-on"), None)
        if row is not None and row.state == "RUNNING":
            return submission
        assert time.monotonic() < end
        time.sleep(0.5)


def test_a_flipped_byte_is_found_and_told_to_the_job_that_reads_it(
    site: Portal, cluster: "Instance"
) -> None:
    published(site)
    reads = running(site)
    flip = "printf X | dd of=/datasets/words/deep/7 bs=1 seek=500 conv=notrunc"
    assert cluster.run(["bash", "-c", flip]).returncode == 0
    boss = b.viewer(
        "nlp-1", person_id=site.viewer.person_id, role=Role.ADMINISTRATOR, groups=("nlp",)
    )
    desk = site_jobs.Desk(site.begin, site.begin, site.broker, site.catalogue, CLUSTER)
    dataset_verify.start("words", 1, viewer=boss, desk=desk, form_key="v", now=site.now)

    end = time.monotonic() + 120
    while True:
        site.poll()
        site.ingest()
        later = site.now + timedelta(minutes=3)
        site_jobs.collect(
            begin=site.begin, read=site.begin, broker=site.broker, kinds=KINDS, now=later
        )
        with site.begin() as session:
            version = datasets.versions(session, [1])[0]
            checks = dataset_work.checks(session, [version.id])
        if checks:
            break
        assert time.monotonic() < end
        time.sleep(1)
    cluster.run(["scancel", "--name=reads-on"])
    assert site.events(reads)[-1] == "dataset_damaged"
    report = read_report(checks[0].facts)
    assert version.health == "damaged", json.dumps(checks[0].facts)
    assert report.changed == ("deep/7",)
    assert (report.missing, report.extra, report.bytes_read) == ((), (), 2_000_004)
    assert version.read_mbps
