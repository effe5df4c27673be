"""Jobs of the portal itself: sent once, collected once, however they end, whatever they write."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select

from gateway.core.access import Role
from gateway.core.environments import NONE, Environment, EnvironmentKind
from gateway.core.manifest import Text
from gateway.errors import Refused
from gateway.services import environment_checks, site_jobs, snapshots, submit
from gateway.services.environment_publish import Entry
from gateway.services.site_kinds import KINDS
from gateway.services.templates import Catalogue
from gateway.store import environments as store
from gateway.store import site_jobs as rows
from gateway.store.environment_models import EnvironmentCheck, SiteJob
from gateway.store.uow import Begin
from gateway.testing.portal import CLUSTER, Portal, portal
from gateway.testing.snapshot_samples import BASE, fields, keep
from gateway.web.messages import TEXTS

TORCH = Environment("torch", Text("Torch", "Torch"), EnvironmentKind.VENV, path="/opt/envs/torch")
RESULT: dict[str, Any] = {
    "version": 1,
    "found": {"versions": {"torch": "2.13.0"}, "archs": {}, "kit": []},
    "driver": "550.54",
    "capability": "8.0",
    "base": "",
    "steps": [{"name": "import torch", "ok": True, "seconds": 1.5, "text": ""}],
    "seconds": 2.5,
}


@pytest.fixture
def site(begin: Begin) -> Portal:
    return portal(begin)


def desk(site: Portal, login: str = "") -> site_jobs.Desk:
    return site_jobs.Desk(
        site.begin, site.begin, site.broker, site.catalogue, CLUSTER, service_login=login
    )


def start(site: Portal, key: str = "key-1", **changes: Any) -> int:
    leader = replace(site.viewer, leads=("nlp",))
    given: dict[str, Any] = {"viewer": leader, "desk": desk(site), "form_key": key}
    return environment_checks.start(Entry(TORCH, None), "a100", now=site.now, **(given | changes))


def collect(site: Portal) -> int:
    return site_jobs.collect(
        begin=site.begin, read=site.begin, broker=site.broker, kinds=KINDS, now=site.now
    )


def end(site: Portal, state: str, text: str | None = None) -> None:
    """Let its job write this, and end so; the portal learns of it, and two minutes pass."""
    job_id = max(site.broker.jobs)
    if text is not None:
        site.broker.files.write(f"/home/nlp-1/.sluice/site/{job_id}.json", "nlp-1", text)
    site.broker.finish(job_id, state)
    site.work()
    site.broker.advance(180)


def row(site: Portal) -> SiteJob:
    with site.begin() as session:
        return session.scalars(select(SiteJob).order_by(SiteJob.id.desc()).limit(1)).one()


def checks(site: Portal) -> list[EnvironmentCheck]:
    with site.begin() as session:
        return list(session.scalars(select(EnvironmentCheck)))


def test_a_check_is_sent_collected_and_in_the_matrix_once(site: Portal) -> None:
    first = start(site)
    assert collect(site) == 0
    end(site, "COMPLETED", json.dumps(RESULT))

    assert [collect(site), collect(site)] == [1, 0]
    [check] = checks(site)
    assert (row(site).id, row(site).state, row(site).code) == (first, "done", None)
    assert (check.ok, check.code, check.driver) == (True, None, "550.54")
    assert check.found["versions"] == {"torch": "2.13.0"}


def test_a_check_tells_what_snapshots_lie_above_and_a_later_one_that_it_has_changed(
    site: Portal,
) -> None:
    document = fields("nlp-1", base=BASE | {"name": "torch"})
    keep(site.broker.files, "nlp-1", [document])
    where: dict[str, Any] = {"begin": site.begin, "broker": site.broker, "area": ""}
    snapshots.refresh(site.viewer, now=site.now, **where)
    for key, base in (("key-1", "b" * 64), ("key-2", "d" * 64)):
        with site.begin() as session:
            assert snapshots.affected(session) == []
        start(site, key)
        end(site, "COMPLETED", json.dumps(RESULT | {"base": base}))
        collect(site)
    with site.begin() as session:
        [one] = snapshots.affected(session)
    assert (one.name, one.snapshots, one.people) == ("torch", 1, 1)


def test_the_same_form_twice_is_one_job_and_a_second_form_waits(site: Portal) -> None:
    assert start(site) == start(site)
    assert len(site.broker.jobs) == 1
    with pytest.raises(Refused, match="site_job_open"):
        start(site, "key-2")


def test_no_more_than_so_many_are_open(site: Portal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site_jobs, "MOST_OPEN", 1)
    start(site)
    other = Entry(replace(TORCH, name="other"), None)
    with pytest.raises(Refused, match="site_jobs_full"):
        environment_checks.start(
            other,
            "a100",
            viewer=replace(site.viewer, leads=("nlp",)),
            desk=desk(site),
            form_key="key-2",
            now=site.now,
        )


DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        json.dumps({}),
        json.dumps(RESULT | {"version": 2}),
        json.dumps(RESULT | {"more": 1}),
        json.dumps(RESULT | {"seconds": -1}),
        json.dumps(RESULT | {"steps": [{"name": "x"}]}),
        json.dumps(RESULT | {"steps": RESULT["steps"] * 100}),
        json.dumps(RESULT | {"driver": "550\nrm"}),
        json.dumps(RESULT | {"base": "b" * 63}),
        json.dumps(RESULT | {"found": {"versions": {"torch; rm": "1"}}}),
        json.dumps(RESULT).replace("2.5", "NaN"),
        json.dumps(RESULT).replace("2.5", "9" * 5000),
        DEEP,
        json.dumps(RESULT) + " " * site_jobs.MOST_BYTES,
    ],
)
def test_what_is_no_result_is_refused_whole(site: Portal, text: str) -> None:
    start(site)
    end(site, "COMPLETED", text)

    assert collect(site) == 1
    [check] = checks(site)
    assert (row(site).state, row(site).code) == ("failed", "site_job_bad_result")
    assert (check.ok, check.code, check.found) == (False, "site_job_bad_result", {})


@pytest.mark.parametrize("state", ["CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY"])
def test_how_the_job_ended_is_said_whatever_it_wrote(site: Portal, state: str) -> None:
    start(site)
    end(site, state, json.dumps(RESULT))

    collect(site)
    assert row(site).code == checks(site)[0].code == f"site_job_{state.lower()}"
    assert row(site).code in TEXTS


def test_a_job_without_a_result_is_waited_for_a_moment(site: Portal) -> None:
    start(site)
    site.broker.finish(max(site.broker.jobs), "FAILED", code=78)
    site.work()
    assert collect(site) == 0
    site.broker.advance(180)
    assert collect(site) == 1
    assert row(site).code == "site_job_no_result"


def test_a_step_that_failed_fails_the_check_and_keeps_what_was_found(site: Portal) -> None:
    start(site)
    broken = {"name": "attention kernel", "ok": False, "seconds": 1, "text": "no kernel image"}
    end(site, "FAILED", json.dumps(RESULT | {"steps": [broken]}))

    collect(site)
    [check] = checks(site)
    assert (check.ok, check.code) == (False, "check_failed")
    assert check.steps[0]["text"] == "no kernel image"
    assert check.found["versions"] == {"torch": "2.13.0"}


def test_a_sender_that_died_before_or_after_the_submission_leaves_one_result(
    site: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(rows, "linked", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            start(site)
    assert row(site).submission_id is None
    collect(site)
    assert row(site).submission_id is not None
    end(site, "COMPLETED", json.dumps(RESULT))
    assert [collect(site), len(checks(site))] == [1, 1]

    with monkeypatch.context() as patch:
        patch.setattr(submit, "submit", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            start(site, "key-2")
    site.broker.advance(700)
    assert collect(site) == 1
    assert row(site).code == "site_job_not_sent"


def test_a_finish_that_dies_leaves_it_open_for_the_next_turn(site: Portal) -> None:
    def die(*_: Any) -> None:
        raise KeyboardInterrupt

    start(site)
    end(site, "COMPLETED", json.dumps(RESULT))
    with pytest.raises(KeyboardInterrupt):
        site_jobs.collect(
            begin=site.begin,
            read=site.begin,
            broker=site.broker,
            kinds={"environment": die},
            now=site.now,
        )
    assert row(site).state == "open"
    assert [collect(site), len(checks(site))] == [1, 1]


def test_who_may_not_and_without_a_service_person_nobody_by_the_clock(site: Portal) -> None:
    with pytest.raises(Refused, match="environment_not_yours"):
        start(site, viewer=site.viewer)
    with pytest.raises(Refused, match="service_login_missing"):
        site_jobs.sender(desk(site))
    with pytest.raises(Refused, match="service_login_unknown"):
        site_jobs.sender(desk(site, "nobody"))
    with pytest.raises(Refused, match="unknown_gpu_type"):
        environment_checks.start(
            Entry(TORCH, None),
            "h999",
            viewer=replace(site.viewer, role=Role.ADMINISTRATOR),
            desk=desk(site),
            form_key="k",
            now=site.now,
        )


def test_by_the_clock_each_pair_is_tried_once_in_its_time(site: Portal) -> None:
    def turn() -> int:
        return environment_checks.start_due(
            desk=desk(site, "nlp-1"), file=(NONE, TORCH), every=timedelta(days=30), now=site.now
        )

    with site.begin() as session:
        types = environment_checks.gpu_types(session)
    sent = [turn() for _ in types]
    assert sum(sent) == len(types)
    assert turn() == 0
    for _ in types:
        end(site, "COMPLETED", json.dumps(RESULT))
        del site.broker.jobs[max(site.broker.jobs)]
    collect(site)
    assert turn() == 0
    site.broker.advance(31 * 86400)
    assert turn() > 0


def test_a_submission_that_slurm_refuses_says_so(site: Portal) -> None:
    site.broker.refuse_next("group_submit_limit")
    start(site)
    assert collect(site) == 1
    assert row(site).code == "group_submit_limit"
    with site.begin() as session:
        assert store.newest_checks(session)["torch", "a100"].code == "group_submit_limit"


def test_a_form_that_was_refused_is_not_sent_again_by_its_key(site: Portal) -> None:
    group_gone = replace(desk(site), catalogue=Catalogue.load(()))
    with pytest.raises(submit.InvalidAsk):
        start(site, desk=group_gone)
    first = row(site)
    assert (first.state, first.code) == ("failed", "unknown_template")
    assert start(site) == first.id
    assert site.broker.jobs == {}
    assert start(site, "key-2") != first.id
