"""The start beside the form: times with what they rest on, other shapes, and what is kept."""

import html
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from gateway.core.forecast import Ask, Forecast, ForecastSource, NoForecast
from gateway.history.forecasting import features, model, rows
from gateway.services.forecaster import Answers
from gateway.store.forecast_models import StartForecast
from gateway.testing.forecast_samples import fill_forecasts
from tests.web.conftest import Site


class ByCards:
    """An hour a card; other partitions are twice as quick."""

    version: str | None = "rule"
    none: NoForecast | None = None

    def forecast(self, asks: Sequence[Ask]) -> Sequence[Forecast | NoForecast]:
        if self.none is not None:
            return [self.none] * len(asks)
        return [self._one(one) for one in asks]

    def _one(self, one: Ask) -> Forecast:
        seconds = 3600 * one.gpus // (1 if one.partition == "a100" else 2)
        return Forecast(seconds, 3 * seconds, ForecastSource.HISTORY, 812)


@pytest.fixture
def rule(site: Site) -> ByCards:
    found = ByCards()
    have = site.app.extensions["sluice"]
    site.app.extensions["sluice"] = replace(have, forecaster=found)
    return found


def words(text: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


def offered(text: str) -> list[str]:
    """What the box of the start offers, without what stands elsewhere on the page."""
    box = text[text.index('id="start"') :].split("</section>", maxsplit=1)[0]
    return re.findall(r'name="set" value="([^"]+)"', box)


def preview(site: Site, fields: dict[str, str]) -> str:
    answer = site.signed_in().post("/submit/preview", fields, headers={"HX-Request": "true"})
    assert answer.status_code == 200
    return answer.text


def test_the_form_says_when_it_would_start(site, filled, rule):
    site.look()
    said = words(preview(site, filled(partition="a100", nodes="2", nproc_per_node="4")))
    assert "p50 as many start sooner as later 8 h" in said
    assert "p90 nine of ten have started 1 d" in said
    assert "An estimate by 812 starts in a100 in the last 30 days" in said
    assert "not known yet" in said
    assert "estimate" not in site.broker.calls


def test_how_good_forecasts_like_it_were_stands_beside(site, filled, rule):
    fill_forecasts(site.begin, now=site.broker.now, cluster="old")
    said = words(preview(site, filled(partition="a100", nodes="2", nproc_per_node="4")))
    assert re.search(
        r"Of the last \d+ forecasts like this (8[5-9]|9\d) % of the jobs started", said
    )


def test_a_record_of_too_few_other_people_is_not_told(site, filled, rule):
    """The reader is none of them; who is alone in it sees the own record."""
    shown = {}
    for people in (("nlp-1", "waits-1", "waits-2"), ("waits-1", "waits-2", "waits-3"), ("nlp-1",)):
        with site.begin() as session:
            session.query(StartForecast).delete()
        fill_forecasts(site.begin, now=site.broker.now, cluster="-".join(people), people=people)
        said = words(preview(site, filled(partition="a100", nodes="2", nproc_per_node="4")))
        shown[people] = "forecasts like this" in said
    assert list(shown.values()) == [False, True, True]


def test_a_click_takes_another_shape(site, filled, rule):
    site.look()
    fields = filled(partition="a100", nodes="2", nproc_per_node="4")
    text = preview(site, fields)
    (value,) = re.findall(r'name="set" value="(nodes=1)"', text)
    answer = site.signed_in().post("/submit/choices", fields | {"set": value})
    assert 'name="nodes" type="number" value="1"' in answer.text or re.search(
        r'name="nodes"[^>]*value="1"', answer.text
    )
    assert "p50 as many start sooner as later 4 h" in words(answer.text)


def learned(site: Site) -> Answers:
    """A model of a100: normal waits hours, urgent minutes, and least a QoS of others."""
    chance, number, now = np.random.default_rng(6), 4000, rows.seconds(site.broker.now)
    qos = chance.choice(["normal", "urgent", "staff"], number)
    wait = chance.lognormal(np.select([qos == "normal", qos == "urgent"], [9.8, 5.5], 3), 0.4)
    asked = now - chance.integers(1, 20 * 86_400, number)
    ones = np.ones(number, dtype=int)
    past = rows.make(
        {
            "asked": asked,
            "left": asked + wait.astype(int),
            "started": ones > 0,
            "end": asked + wait.astype(int) + 7200,
            "counts": ones > 0,
            "group": np.full(number, "nlp"),
            "partition": np.full(number, "a100"),
            "qos": qos,
            "gpu_type": np.full(number, ""),
            "gpus": 4 * ones,
            "nodes": ones,
            "cpus": 32 * ones,
            "minutes": 720 * ones,
        }
    ).known(now)
    return Answers(model.train(past, now=site.broker.now), features.Queue.of(past))


def test_a_qos_that_starts_sooner_is_offered_to_who_may_use_it(site, filled):
    have = site.app.extensions["sluice"]
    site.app.extensions["sluice"] = replace(have, forecaster=learned(site))
    fields = filled(partition="a100", nodes="1", nproc_per_node="4")
    assert offered(preview(site, fields)) == ["qos=urgent"]
    answer = site.signed_in().post("/submit/choices", fields | {"set": "qos=urgent"})
    said = words(answer.text)
    assert re.search(r"p50 as many start sooner as later [2-7] min", said)
    assert not offered(answer.text)


@pytest.mark.parametrize(
    ("none", "text"),
    [
        (NoForecast.TOO_THIN, "too few jobs have started in a100"),
        (NoForecast.NO_HISTORY, "has learned nothing of waits here"),
    ],
)
def test_without_a_forecast_it_says_why_and_gives_no_number(site, filled, rule, none, text):
    rule.none = none
    said = words(preview(site, filled(partition="a100")))
    assert text in said
    assert "nine of ten" not in said


def test_what_cannot_start_gets_words(site, filled, rule):
    said = words(preview(site, filled(partition="a100", nodes="900")))
    assert "As it is it cannot start" in said


def told(site: Site) -> list[tuple[str, timedelta]]:
    with site.begin() as session:
        found = session.query(StartForecast).order_by(StartForecast.source)
        return [(one.source, one.p50_at - one.made_at) for one in found]


def test_the_submission_keeps_what_was_shown(site, filled, rule):
    site.look()
    browser = site.signed_in()
    fields = filled(partition="a100", nodes="1", nproc_per_node="4")
    asked = browser.post("/submit/estimate", fields, headers={"HX-Request": "true"})
    (seal,) = re.findall(r'name="slurm_start" value="([^"]+)"', asked.text)
    assert browser.post("/submit", fields | {"slurm_start": seal}).status_code == 303
    assert [source for source, _ in told(site)] == ["history", "slurm"]
    assert told(site)[0][1] == timedelta(hours=4)


def test_an_estimate_of_another_shape_or_of_ones_own_making_is_not_kept(site, filled, rule):
    site.look()
    browser = site.signed_in()
    fields = filled(partition="a100", nodes="1", nproc_per_node="4")
    asked = browser.post("/submit/estimate", fields, headers={"HX-Request": "true"})
    (seal,) = re.findall(r'name="slurm_start" value="([^"]+)"', asked.text)
    other = filled(partition="a100", nodes="1", nproc_per_node="2", form_key="other")
    assert browser.post("/submit", other | {"slurm_start": seal}).status_code == 303
    forged = f"{seal[:8]}{'A' if seal[8] != 'A' else 'B'}{seal[9:]}"
    mine = fields | {"slurm_start": forged, "form_key": "third"}
    assert browser.post("/submit", mine).status_code == 303
    assert [source for source, _ in told(site)] == ["history", "history"]
