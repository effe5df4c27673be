"""Datasets are on the nodes before a job starts there: Slurm plans it, a small job copies them."""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from test_datasets import output, published, site  # noqa: F401

from gateway.core.ask import Ask
from gateway.services import dataset_ahead, site_jobs
from gateway.services.site_kinds import KINDS
from gateway.store import models
from gateway.testing.portal import CLUSTER, Portal

if TYPE_CHECKING:
    from broker_fixture import ClusterSite

    from contrib.devcluster.instance import Instance

pytestmark = pytest.mark.slurm


def ask(name: str, minutes: int, nodes: int, **values: str) -> Ask:
    return Ask(
        template="command",
        group="nlp",
        partition="a100",
        qos="normal",
        nodes=str(nodes),
        nproc_per_node="1",
        time_limit=str(minutes),
        name=name,
        working_directory="~",
        values={"gpus_per_node": "8", **values},
    )


def until(site: Portal, true: Callable[[], bool], seconds: float = 90) -> None:  # noqa: F811
    end = time.monotonic() + seconds
    while True:
        site.poll()
        site.ingest()
        if true():
            return
        assert time.monotonic() < end, site.broker.queue().jobs
        time.sleep(1)


def named(site: Portal, name: str) -> models.Job | None:  # noqa: F811
    return next((one for one in site.jobs() if one.name.startswith(name)), None)


def test_copied_where_slurm_plans_the_job_and_found_there_when_it_starts(
    site: Portal,  # noqa: F811
    cluster: "Instance",
    cluster_site: "ClusterSite",
) -> None:
    published(site)
    site.submit(ask("all-cards", 6, 4, command="sleep 600"), key="all-cards")
    until(site, lambda: named(site, "all-cards").state == "RUNNING")
    wanted = ask("reads", 5, 2, command="true", datasets="words", stage_datasets="true")
    main = site.submit(wanted, key="reads")
    until(site, lambda: bool(site.poll().planned))
    [plan] = site.poll().planned
    assert plan.start > site.now + timedelta(minutes=2)

    desk = site_jobs.Desk(site.begin, site.begin, site.broker, site.catalogue, CLUSTER)
    assert dataset_ahead.copy_due([plan], desk=desk, now=site.now) == 1
    assert dataset_ahead.copy_due([plan], desk=desk, now=site.now) == 0
    until(site, lambda: (job := named(site, "copy-for-")) is not None and not job.active)
    copied = named(site, "copy-for-")
    assert copied is not None
    assert (copied.state, copied.qos, copied.gpus) == ("COMPLETED", "spot", 0)
    with site.begin() as session:
        [run] = session.query(models.Run).filter(models.Run.job_id == copied.id)
        expanded = run.node_list
    shown = cluster.run(["scontrol", "show", "hostnames", expanded or ""]).stdout.split()
    assert tuple(sorted(shown)) == tuple(sorted(plan.nodes))
    assert copied.start_time is not None
    assert copied.start_time + timedelta(minutes=copied.time_limit_minutes or 0) <= plan.start

    def told() -> bool:
        at = site.now + timedelta(minutes=3)
        site_jobs.collect(
            begin=site.begin, read=site.begin, broker=site.broker, kinds=KINDS, now=at
        )
        return site.events(main)[-1] == "datasets_copied"

    until(site, told)
    number = site.submission(main).job_id  # others of that name may have been here before
    [waits] = [job for job in site.jobs() if job.id == number]
    assert waits.state == "PENDING"  # the cards are still taken: nothing was hurried or put off
    cluster.run(["scancel", "--name=all-cards"])
    said = output(site, cluster, main)
    assert "/datasets/words: there already" in said, said
