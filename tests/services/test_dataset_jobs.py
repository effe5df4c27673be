"""Jobs about datasets: the schedule of verifications, a manifest made, what an image binds."""

import json
from datetime import timedelta
from typing import Any

import pytest

from gateway.core.environments import NONE, Environment, EnvironmentKind
from gateway.core.manifest import Text
from gateway.services import dataset_entries, dataset_verify, dataset_versions, site_jobs
from gateway.services.dataset_entries import Entry
from gateway.services.dataset_versions import NewVersion
from gateway.services.site_kinds import KINDS
from gateway.store import dataset_work, datasets
from gateway.store.uow import Begin
from gateway.testing.dataset_samples import add_dataset, add_folder, add_version
from gateway.testing.portal import ASK, CLUSTER, Portal, ask, portal

MONTH = timedelta(days=30)


@pytest.fixture
def site(begin: Begin) -> Portal:
    return portal(begin)


def desk(site: Portal, login: str = "nlp-1") -> site_jobs.Desk:
    return site_jobs.Desk(
        site.begin, site.begin, site.broker, site.catalogue, CLUSTER, service_login=login
    )


def published(site: Portal, name: str, *, days: int) -> int:
    """Published, and not looked at, for so many days; the version."""
    owner, when = site.viewer.person_id, site.now - timedelta(days=days)
    dataset = add_dataset(site.begin, owner, name, created_at=when)
    add_folder(site.broker, f"/datasets/{dataset}")
    return add_version(site.begin, dataset, owner, created_at=when, published_at=when)


def version(site: Portal, version_id: int) -> datasets.VersionRow:
    with site.begin() as session:
        found = datasets.version(session, version_id)
    assert found is not None
    return found


def due(site: Portal, login: str = "nlp-1") -> int:
    return dataset_verify.start_due(desk=desk(site, login), every=MONTH, now=site.now)


def end(site: Portal, result: dict[str, Any], job_id: int | None = None) -> None:
    """Its job writes this and ends well, and the portal collects it."""
    job_id = job_id or max(site.broker.jobs)
    path = f"/home/nlp-1/.sluice/site/{job_id}.json"
    site.broker.files.write(path, "nlp-1", json.dumps(result))
    site.broker.finish(job_id, "COMPLETED")
    site.work()
    site_jobs.collect(
        begin=site.begin, read=site.begin, broker=site.broker, kinds=KINDS, now=site.now
    )


def report(found: datasets.VersionRow, **changes: Any) -> dict[str, Any]:
    kinds: dict[str, Any] = {"changed": [], "missing": [], "extra": []}
    facts = {"files": 3, "bytes_read": 3000, "seconds": 0.5, "writable": False, "error": ""}
    counts = dict.fromkeys(kinds, 0)
    return {**kinds, "counts": counts, **facts, "manifest": found.manifest, **changes}


def test_what_is_old_is_read_again_two_a_turn_the_oldest_first(site: Portal) -> None:
    for name, days in (("new", 3), ("old", 40), ("older", 50), ("oldest", 60)):
        published(site, name, days=days)
    assert due(site) == 2
    names = [job.request.name for job in site.broker.jobs.values()]
    assert names == ["verify-oldest", "verify-older"]
    assert due(site) == 1
    assert due(site) == 0  # what is under way is not sent again


def test_after_a_report_it_rests_for_a_month(site: Portal) -> None:
    kept = published(site, "words", days=40)
    assert due(site) == 1
    end(site, report(version(site, kept)))
    found = version(site, kept)
    assert (found.health, found.checked_at, found.read_mbps) == ("good", site.now, 0.006)
    site.broker.advance(29 * 86400)
    assert due(site) == 0
    site.broker.advance(2 * 86400)
    assert due(site) == 1


def test_damage_stands_in_the_history_of_jobs_that_read_it_now(site: Portal) -> None:
    kept = published(site, "words", days=40)
    reads = ask(values={**ASK.values, "datasets": "words"})
    over = site.submit(reads, key="over")
    site.broker.advance(1)
    site.broker.finish(max(site.broker.jobs))
    running = site.submit(reads, key="running")
    beside = site.submit(ask(), key="reads-something-else")
    waits = site.submit(ask(nodes="4", nproc_per_node="8", values=reads.values), key="waits")
    site.broker.advance(1)
    site.work()
    due(site)
    damage = {"changed": ["part-001"], "counts": {"changed": 1, "missing": 0, "extra": 0}}
    end(site, report(version(site, kept), **damage))
    told = [one for one in (over, running, beside, waits) if "dataset_damaged" in site.events(one)]
    assert told == [running]
    assert version(site, kept).health == "damaged"


def test_a_job_that_failed_is_tried_again_a_day_later_and_says_nothing_good(site: Portal) -> None:
    kept = published(site, "words", days=40)
    due(site)
    site.broker.finish(max(site.broker.jobs), "FAILED")
    site.work()
    site.broker.advance(180)
    site_jobs.collect(
        begin=site.begin, read=site.begin, broker=site.broker, kinds=KINDS, now=site.now
    )
    found = version(site, kept)
    assert (found.health, found.checked_at) == ("failed", None)
    assert due(site) == 0
    site.broker.advance(86400)
    assert due(site) == 1


def test_a_report_of_another_manifest_is_refused(site: Portal) -> None:
    kept = published(site, "words", days=40)
    due(site)
    end(site, report(version(site, kept), manifest="0" * 64))
    assert version(site, kept).health == "failed"
    with site.begin() as session:
        [check] = dataset_work.checks(session, [kept])
    assert check.facts["error"] == "site_job_bad_result"


def test_a_service_person_who_is_gone_is_told(site: Portal) -> None:
    published(site, "words", days=40)
    assert due(site, "nobody") == 0
    assert site.broker.jobs == {}


def draft(site: Portal) -> None:
    add_folder(site.broker, "/datasets/words")
    who: dict[str, Any] = {"viewer": site.viewer, "begin": site.begin, "now": site.now}
    entry = Entry("Words", "CC0-1.0", "", "everyone", "nlp")
    dataset_entries.create("words", entry, owner_id=site.viewer.person_id, **who)
    made = NewVersion("/datasets/words")
    dataset_versions.add("words", made, created_by=site.viewer.person_id, **who)


def test_a_manifest_is_made_by_a_job_of_who_asks(site: Portal) -> None:
    draft(site)
    dataset_verify.make_manifest(
        "words", 1, viewer=site.viewer, desk=desk(site, ""), form_key="key-1", now=site.now
    )
    [job] = site.broker.jobs.values()
    assert (job.request.user, job.request.gpus_per_node) == ("nlp-1", 0)
    assert "TASK=manifest" in job.request.script
    assert "--output /datasets/words.manifest" in job.request.script
    end(site, {"sha256": "a" * 64, "bytes": 3000, "files": 3})
    found = version(site, 1)
    assert (found.state, found.manifest, found.bytes) == ("draft", "a" * 64, 3000)


@pytest.mark.parametrize("result", [{}, {"sha256": 5, "bytes": 1, "files": 1}, {"sha256": "a"}])
def test_what_is_no_manifests_sums_changes_nothing(site: Portal, result: dict[str, Any]) -> None:
    draft(site)
    dataset_verify.make_manifest(
        "words", 1, viewer=site.viewer, desk=desk(site, ""), form_key="key-1", now=site.now
    )
    end(site, result)
    assert version(site, 1).manifest is None


def test_an_image_gets_the_folders_read_only_and_the_nodes_copies(site: Portal) -> None:
    published(site, "words", days=1)
    image = Environment("image", Text("", ""), EnvironmentKind.APPTAINER, image="/opt/t.sif")
    values = {**ASK.values, "datasets": "words", "stage_datasets": "true"}
    site.submit(ask(environment="image", values=values), environments=(NONE, image))
    [job] = site.broker.jobs.values()
    script = job.request.script
    assert "DATASETS=(/datasets/1)" in script
    sha256 = version(site, 1).manifest
    assert f"MANIFESTS=({sha256}:/datasets/1.manifest)" in script.replace("'", "")
    bind = 'for place in "${DATASETS[@]}"; do ENTER+=(--bind "$place:$place:ro"); done'
    assert bind in script
    assert 'ENTER+=(--bind "$OWN:$OWN:ro")' in script
    assert script.index(bind) < script.index('ENTER+=("$IMAGE")')
