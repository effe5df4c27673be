"""The script beside the form, Slurm's estimate, and what both leave untouched."""

from dataclasses import replace

import pytest
from sqlalchemy import func, select

from gateway.services.draft import InvalidAsk
from gateway.services.environments import NONE, Environment, EnvironmentKind
from gateway.services.estimate import estimate
from gateway.services.offer import offer
from gateway.services.preview import fresh_ask, preview
from gateway.store import models as t
from gateway.store import prices
from gateway.testing.portal import ASK, ask, portal

CONDA = Environment("torch", NONE.title, EnvironmentKind.PREFIX, path="/opt/torch")


def look(site, wanted=ASK):
    return preview(
        wanted,
        viewer=site.viewer,
        begin=site.begin,
        catalogue=site.catalogue,
        environments=(NONE, CONDA),
    )


def test_the_preview_is_the_script_that_is_submitted(begin):
    site = portal(begin)
    shown = look(site)
    submission = site.submission(site.submit())
    assert shown.problems == ()
    assert shown.script == submission.script


def test_a_preview_asks_nobody_and_writes_nothing(begin):
    site = portal(begin)
    before = list(site.broker.calls)
    look(site)
    look(site, ask(nodes="99"))
    assert site.broker.calls == before
    with begin() as session:
        assert session.scalar(select(func.count()).select_from(t.Submission)) == 0


def test_a_problem_stands_in_place_of_the_script(begin):
    site = portal(begin)
    shown = look(site, ask(nodes="99"))
    assert shown.script is None
    assert [(p.field, p.code) for p in shown.problems] == [("nodes", "too_big")]
    assert shown.reading.time_limit_minutes == 1440


def test_an_unknown_template_and_environment(begin):
    site = portal(begin)
    assert look(site, ask(template="gone")).problems[0].code == "unknown_template"
    (problem,) = look(site, ask(environment="gone")).problems
    assert (problem.field, problem.code) == ("environment", "unknown_environment")


def test_an_environment_of_the_site_is_set_up_in_the_script(begin):
    assert "/opt/torch/bin" in (look(portal(begin), ask(environment="torch")).script or "")


def test_a_virtual_environment_of_ones_own(begin):
    site = portal(begin)
    path = ASK.values | {"environment_path": "/home/nlp-1/venv"}
    own = look(site, ask(environment="own", values=path))
    assert "/home/nlp-1/venv/bin/activate" in (own.script or "")
    relative = look(site, ask(environment="own", values=path | {"environment_path": "venv"}))
    (problem,) = relative.problems
    assert (problem.field, problem.code) == ("environment_path", "field_path_relative")


def test_a_fresh_form_of_each_template_has_the_persons_defaults(begin):
    site = portal(begin)
    mine = offer(site.viewer, begin=begin)
    for template in site.catalogue.all():
        fresh = fresh_ask(template.manifest, mine)
        assert (fresh.group, fresh.partition, fresh.qos) == ("nlp", "a100", "normal")
        assert {p.field for p in look(site, fresh).problems} <= {"script", "command", "table"}


def test_slurms_estimate_makes_no_job(begin):
    site = portal(begin)
    found = _estimate(site, ASK)
    assert found.start_time == site.now
    assert site.broker.jobs == {}


def test_no_estimate_for_what_cannot_work(begin):
    site = portal(begin)
    with pytest.raises(InvalidAsk):
        _estimate(site, ask(nodes="99"))
    assert "estimate" not in site.broker.calls


def test_an_offer_is_read_from_the_store_alone(begin):
    site = portal(begin)
    before = list(site.broker.calls)
    mine = offer(site.viewer, begin=begin)
    assert [group.name for group in mine.groups] == ["nlp"]
    assert offer(replace(site.viewer, unix_user="nobody"), begin=begin).groups == ()
    assert site.broker.calls == before


def _estimate(site, wanted):
    return estimate(
        wanted,
        viewer=site.viewer,
        begin=site.begin,
        broker=site.broker,
        catalogue=site.catalogue,
        environments=(NONE,),
    )


@pytest.mark.parametrize(("terms", "waits"), [("free", "wait"), ("pay", "requeue")])
def test_a_preempted_run_that_is_given_back_waits_for_slurm_to_say_so(begin, terms, waits):
    site = portal(begin)
    with begin() as session:
        prices.add_terms(
            session,
            qos=ASK.qos,
            factor_millionths=820_000,
            preempted=terms,
            starts=site.now,
            now=site.now,
            person_id=None,
        )
    assert f"export SLUICE_ON_PREEMPT={waits}\n" in look(site).script
