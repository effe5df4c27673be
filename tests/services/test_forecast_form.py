"""What the form proposes instead, by a model of one partition with several types of card."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from gateway.core.ask import Ask
from gateway.core.forecast import Forecast, NoForecast
from gateway.core.offer import Offer
from gateway.core.policy import build_offer, judge
from gateway.core.start_choices import Change
from gateway.history.forecasting import features, model, rows
from gateway.services.forecast_form import Starts, starts
from gateway.services.forecaster import Answers
from gateway.testing import builders as b
from gateway.testing.template_samples import shipped

USUAL = {"a100": 18_000, "h100": 300, "b200": 60, "": 3000}
ASK = Ask(
    template="ddp",
    group="nlp",
    partition="mixed",
    qos="normal",
    nodes="1",
    nproc_per_node="1",
    gpu_type="a100",
    time_limit="600",
    name="train",
    working_directory="~",
    values={"script": "train.py"},
)


def offer() -> Offer:
    nodes = [
        b.node(f"{kind}-{n}", partitions=("mixed",), gpu_type=kind, gpus=8, cpus=64)
        for kind in ("a100", "h100", "b200")
        for n in range(2)
    ]
    allowed = (b.association(qos=("normal",)),)
    return build_offer("member", allowed, (b.partition("mixed"),), (b.qos(),), nodes)


def learned(shares: Mapping[str, float]) -> Answers:
    """`shares` of those who asked for which type; how long each waits is in USUAL."""
    chance, number, now = np.random.default_rng(4), 3000, rows.seconds(b.NOW)
    asked = now - chance.integers(1, 20 * 86_400, number)
    kind = chance.choice(list(shares), number, p=list(shares.values()))
    usual = np.array([USUAL[one] for one in kind])
    wait = (usual * chance.lognormal(0, 0.3, number)).astype(np.int64)
    ones = np.ones(number, dtype=int)
    past = rows.make(
        {
            "asked": asked,
            "left": asked + wait,
            "started": ones > 0,
            "end": asked + wait + 3600,
            "counts": ones > 0,
            "group": np.full(number, "nlp"),
            "partition": np.full(number, "mixed"),
            "qos": np.full(number, "normal"),
            "gpu_type": kind,
            "gpus": ones,
            "nodes": ones,
            "cpus": 8 * ones,
            "minutes": 600 * ones,
        }
    ).known(now)
    return Answers(model.train(past, now=b.NOW), features.Queue.of(past))


def shown(begin, forecaster: Answers, ask: Ask = ASK) -> Starts | None:
    allowed, manifest = offer(), shipped("ddp")
    judged = judge(ask, allowed, manifest)
    return starts(
        ask,
        judged.reading,
        judged.problems,
        offer=allowed,
        manifest=manifest,
        user="member",
        forecaster=forecaster,
        read=begin,
        now=b.NOW,
        k=3,
    )


def test_a_type_that_starts_sooner_in_the_same_partition_is_proposed(begin) -> None:
    found = shown(begin, learned({"a100": 0.4, "h100": 0.3, "": 0.298, "b200": 0.002}))
    assert found is not None
    assert isinstance(found.own, Forecast)
    assert 4 * 3600 < found.own.p50_s < 6 * 3600
    # A b200 would be the quickest of all; too few have waited for one to say so.
    (one,) = found.instead
    assert (one.change, dict(one.sets)) == (
        Change.GPU_TYPE,
        {"partition": "mixed", "gpu_type": "h100"},
    )
    assert one.start.p50_s < 600


@pytest.mark.parametrize("shares", [{"": 1.0}, {"": 0.9, "a100": 0.1}])
def test_where_nobody_asked_for_another_type_none_is_proposed(begin, shares) -> None:
    found = shown(begin, learned(shares))
    assert found is not None
    assert isinstance(found.own, Forecast)
    assert found.instead == ()


def test_any_type_is_no_later_than_one(begin) -> None:
    forecaster = learned({"a100": 0.5, "": 0.5})
    found = shown(begin, forecaster, replace(ASK, gpu_type=""))
    assert found is not None
    assert isinstance(found.own, Forecast)
    assert found.own.p50_s < 4500


def test_odd_forms_get_words_or_nothing(begin) -> None:
    forecaster = learned({"a100": 0.5, "": 0.5})
    said = set()
    for limit in ("0", "99999999", "3650-00:00:00", "", "-5", "abc", "600"):
        for cards in ("0", "", "9999", "-1", "1"):
            odd = replace(ASK, time_limit=limit, nproc_per_node=cards)
            found = shown(begin, forecaster, odd)
            said.add(type(found.own) if found else None)
    assert said == {None, NoForecast, Forecast}
    gone = shown(begin, forecaster, replace(ASK, partition="gone"))
    assert gone is not None
    assert gone.own is NoForecast.NEVER
