"""Datasets copied to the nodes on which a waiting job is planned to start, before it starts."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from gateway.core.dataset_ahead import copy_time, minutes_now
from gateway.services import dataset_ahead, site_jobs
from gateway.services.site_kinds import KINDS
from gateway.store import datasets, models
from gateway.store import site_jobs as rows
from gateway.store.queries import dataset_usage
from gateway.store.uow import Begin
from gateway.testing.dataset_samples import add_dataset, add_folder, add_version
from gateway.testing.portal import ASK, CLUSTER, Portal, ask, portal

GB = 10**9


def minutes(count: float) -> timedelta:
    return timedelta(minutes=count)


def test_the_time_of_a_copy_is_its_bytes_by_the_speed_that_was_measured() -> None:
    assert copy_time([(60 * GB, 1000.0)]) == minutes(1)
    assert copy_time([(60 * GB, 1000.0), (3 * GB, None)]) == minutes(2)


@pytest.mark.parametrize(
    ("left", "limit"),
    [(2.9, None), (3, 1), (8.7, 6), (18.9, 16), (19, 17), (25, 17), (25.1, None)],
)
def test_a_copy_begins_when_the_start_is_near_and_is_over_before_it(
    left: float, limit: int | None
) -> None:
    assert minutes_now(minutes(10), minutes(left)) == limit


@pytest.fixture
def site(begin: Begin) -> Portal:
    made = portal(begin)
    owner, now = made.viewer.person_id, made.now
    dataset = add_dataset(begin, owner, "words", created_at=now)
    add_folder(made.broker, f"/datasets/{dataset}")
    facts = {"created_at": now, "published_at": now, "bytes": 60 * GB, "read_mbps": 1000.0}
    add_version(begin, dataset, owner, **facts)
    return made


def desk(site: Portal) -> site_jobs.Desk:
    return site_jobs.Desk(site.begin, site.begin, site.broker, site.catalogue, CLUSTER)


def waits(site: Portal, *, stage: str = "true", key: str = "main", **changes: Any) -> int:
    """A job that reads the dataset and waits for cards that others have; its Slurm id."""
    if not site.broker.jobs:
        site.submit(ask(nodes="4"), key="half-of-all-cards")
        site.broker.advance(1)
    values = {**ASK.values, "datasets": "words", "stage_datasets": stage}
    site.submit(ask(values=values, nproc_per_node="8", **changes), key=key)
    return int(max(site.broker.jobs))


def plan(site: Portal, job: int, nodes: str = "a100-[1-2]", left: float = 5) -> int:
    """Backfill plans it, and the worker looks; how many copies were sent."""
    site.broker.jobs[job].planned = (nodes, site.broker.now + minutes(left))
    return look(site)


def look(site: Portal) -> int:
    report = site.poll()
    return dataset_ahead.copy_due(report.planned, desk=desk(site), now=site.now)


def copies(site: Portal) -> list[Any]:
    return [one for one in site.broker.jobs.values() if one.request.name.startswith("copy-for-")]


def test_it_is_copied_there_by_a_job_of_the_same_person_without_cards(site: Portal) -> None:
    job = waits(site)
    assert plan(site, job) == 1
    [copy] = copies(site)
    wanted = copy.request
    assert (wanted.user, wanted.gpus_per_node, wanted.nodes) == ("nlp-1", 0, 2)
    assert wanted.on_nodes == "a100-1,a100-2"
    assert "#SBATCH --nodelist=a100-1,a100-2" in wanted.script
    assert "DATASETS=(/datasets/1)" in wanted.script
    assert wanted.time_limit_minutes <= 5
    assert (wanted.account, wanted.partition, wanted.qos) == ("nlp", "a100", "spot")
    assert (wanted.memory_mb_per_node, site.broker.jobs[job].request.memory_mb_per_node) == (
        2048,
        None,
    )
    assert "datasets_copying" in site.events(2)


def test_it_is_no_use_of_the_dataset_and_costs_nothing(site: Portal) -> None:
    job = waits(site)
    plan(site, job)
    site.work()
    with site.begin() as session:
        [used] = dataset_usage.usage(session, [1])[1]
    assert used.jobs == 1


def test_once_for_a_set_of_nodes_and_three_times_for_a_job(site: Portal) -> None:
    job = waits(site)
    sent = []
    for nodes in ("a100-[1-2]", "a100-[1-2]", "a100-[2-3]", "a100-[3-4]", "a100-[1,4]"):
        sent.append(plan(site, job, nodes))
        for copy in copies(site):
            if copy.state in {"PENDING", "RUNNING"}:
                end(site, copy.job_id)
    assert sent == [1, 0, 1, 1, 0]


def end(site: Portal, job_id: int) -> None:
    site.broker.files.write(f"/home/nlp-1/.sluice/site/{job_id}.json", "nlp-1", '{"copied": true}')
    site.broker.advance(1)
    if site.broker.jobs[job_id].state == "PENDING":
        site.broker.cancel(job_id, user="nlp-1")
    else:
        site.broker.finish(job_id)
    site.work()
    site_jobs.collect(
        begin=site.begin, read=site.begin, broker=site.broker, kinds=KINDS, now=site.now
    )


def test_what_came_of_it_stands_in_the_jobs_history(site: Portal) -> None:
    job = waits(site)
    plan(site, job)
    site.broker.advance(1)
    [copy] = copies(site)
    assert copy.state == "RUNNING"  # processors were free beside the cards
    end(site, copy.job_id)
    assert site.events(2)[-1] == "datasets_copied"


@pytest.mark.parametrize("left", [1, 60])
def test_too_near_or_too_far_nothing_is_sent(site: Portal, left: float) -> None:
    assert plan(site, waits(site), left=left) == 0
    assert copies(site) == []


def test_without_the_wish_for_copies_nothing_is_sent(site: Portal) -> None:
    assert plan(site, waits(site, stage="")) == 0


def test_without_a_plan_nothing_is_sent(site: Portal) -> None:
    waits(site)
    assert look(site) == 0


def test_a_plan_of_another_number_of_nodes_is_not_believed(site: Portal) -> None:
    assert plan(site, waits(site), "a100-1") == 0


def test_somebody_elses_job_with_a_copied_token_changes_nothing(site: Portal) -> None:
    job = waits(site)
    site.broker.jobs[job].planned = ("a100-[1-2]", site.now + minutes(5))
    [real] = site.poll().planned
    forged = replace(real, slurm_id=real.slurm_id + 50)
    assert dataset_ahead.copy_due([forged], desk=desk(site), now=site.now) == 0


def test_a_dataset_that_was_withdrawn_is_not_copied_and_not_tried_again(site: Portal) -> None:
    job = waits(site)
    with site.begin() as session:
        datasets.change_version(session, 1, state="withdrawn")
    assert plan(site, job) == 0
    assert look(site) == 0
    with site.begin() as session:
        [one] = rows.newest(session, dataset_ahead.KIND).values()
    assert (one.state, one.code) == ("failed", "unknown_dataset")


def test_somebody_who_was_shut_out_copies_nothing(site: Portal) -> None:
    job = waits(site)
    with site.begin() as session:
        session.get_one(models.Person, site.viewer.person_id).disabled_at = site.now
    assert plan(site, job) == 0


def test_one_that_has_not_begun_when_the_job_starts_is_taken_back(site: Portal) -> None:
    job = waits(site)
    plan(site, job)
    [copy] = copies(site)
    site.broker.hold(copy.job_id, user="nlp-1")
    site.work()
    assert dataset_ahead.take_back_late(desk=desk(site), now=site.now) == 0
    site.broker.advance(6 * 60)
    site.work()
    assert dataset_ahead.take_back_late(desk=desk(site), now=site.now) == 1
    assert site.broker.jobs[copy.job_id].state == "CANCELLED"


def test_a_place_that_a_person_has_few_of_is_not_taken(site: Portal) -> None:
    job = waits(site)
    levels = site.broker.policy.qos
    levels.update({name: replace(one, max_jobs_per_user=2) for name, one in levels.items()})
    site.poll_policy()
    assert plan(site, job) == 0
    assert copies(site) == []
