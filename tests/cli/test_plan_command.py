"""`sluice plan` as somebody types it."""

import json
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gateway.cli import main
from gateway.cli.plan_texts import CHANGES, FITS, NOTICES, SOURCES
from gateway.core.planner.figures import Source
from gateway.core.planner.plan import plan
from gateway.core.planner.verdict import Fit
from gateway.testing.planner_samples import CARDS, ask

CLAIM = ("--params", "10e9", "--tokens", "12e9", "--gpu", "a100-80g", "--gpus", "16")
CLAIM = (*CLAIM, "--mfu", "0.58", "--strategy", "zero3")


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ("plan", *words))


def told(*words: str):
    done = run(*words, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.fixture(autouse=True)
def _own_home(home: Path) -> None:
    """No portal is needed for a plan."""


def test_the_claims_are_answered_in_json():
    found = told(*CLAIM)
    assert found["hours"] == pytest.approx(69, abs=0.5)
    assert found["fits"] is True
    assert found["cost"] is None
    parts = found["memory_per_gpu_gb"]
    assert set(parts) == {
        *("weights", "gradients", "optimizer", "activations", "logits", "overhead", "total")
    }
    assert parts["total"] == pytest.approx(sum(parts.values()) - parts["total"], rel=0.01)
    assert found["checkpoint"]["size_gb"] == 140
    years = told(*CLAIM[:2], "--tokens", "3.2T", *CLAIM[4:])
    assert years["hours"] == pytest.approx(18_420, rel=0.001)
    assert years["days"] == pytest.approx(767, abs=1)


def test_the_cost_is_exact_and_says_where_spot_loses():
    words = ("--price", "3.5", "--package-off", "10", "--spot-off", "18")
    found = told(*CLAIM, *words, "--save-seconds", "300", "--interrupted-hours", "500")["cost"]
    assert found["cheapest"] == "package"
    assert [one["factor"] for one in found["offers"]] == ["1.00", "0.90", "0.82"]
    for one in found["offers"]:
        assert isinstance(one["expected_millionths"], int)
    (crossing,) = [one for one in found["crossings"] if one["than"] == "package"]
    assert crossing["up_to_waste"] == pytest.approx(0.0976, abs=0.0001)
    assert crossing["is_passed"] is True


def test_the_cost_is_by_the_sites_price_list():
    assert CliRunner().invoke(main, ("db", "upgrade")).exit_code == 0
    assert CliRunner().invoke(main, ("price", "set", "a100-80g", "7.38")).exit_code == 0
    offers = told(*CLAIM)["cost"]["offers"]
    assert [(one["name"], one["per_hour"]) for one in offers] == [("list", "7.38")]
    assert "7.38" in run(*CLAIM).output


def test_a_person_reads_tables_and_what_is_an_estimate():
    words = ("--price", "3.5", "--spot-off", "18", "--within-hours", "22.5", "--budget", "85000")
    done = run(*CLAIM, *words)
    assert done.exit_code == 0, done.output
    for words in (
        *(
            "memory of a card, an estimate",
            "It fits.",
            "fewest cards",
            "69.1 hours",
            "MFU of 178 %",
        ),
        *("Cheapest with its waste", "a card-hour of the work: enough for: list, spot"),
        *("Best interval", "Note: Only 6 P is counted"),
    ):
        assert words in done.output
    assert "3868.26 " in done.output  # an estimate has no millionths
    budget = run(*CLAIM, "--budget", "85000").output
    assert "85000.00 CNY comes to 76.91 a card-hour of the work.\n" in budget


def test_each_number_has_its_formula_and_source_on_request():
    done = run(*CLAIM, "--explain")
    assert "12 P / N" in done.output
    assert "arXiv 1910.02054" in done.output
    explained = told(*CLAIM)["explain"]
    assert explained["hours"]["formula"].startswith("D (6 P)")
    assert all(one["sources"] and one["formula"] for one in explained.values())


def test_what_does_not_fit_says_what_would():
    found = told(*CLAIM[:-4], "--strategy", "ddp")
    assert (found["fits"], found["fit"]) == (False, "no")
    assert "zero3" in {name for one in found["changes"] for name in one["values"]}
    done = run(*CLAIM[:-4], "--strategy", "ddp")
    assert "It does not fit." in done.output
    assert "with another strategy:" in done.output


def test_what_nothing_alone_makes_fit_is_said_too():
    done = run("--params", "9e13", *CLAIM[2:-4], "--strategy", "ddp")
    assert "No single change makes it fit." in done.output


def test_a_host_that_is_too_small_is_said():
    words = (*CLAIM[:-1], "zero3-offload-all", "--host-gb", "64")
    assert told(*words)["fits_host"] is False
    assert "memory of a node" in run(*words).output
    assert told(*words[:-1], "512")["fits_host"] is True


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--gpus", "0"), "--gpus: From 1 to 100000"),
        (("--gpus", "-4"), "--gpus: From 1"),
        (("--tokens", "nan"), "--tokens: Type a number"),
        (("--tokens", "1e30"), "--tokens: From 1 to 1e+17"),
        (("--tokens", "many"), "is no number such as 10e9"),
        (("--params", "1e9999999999"), "no number"),
        (("--gpu", "a100"), "Perhaps: a100-40g, a100-80g"),
        (("--gpu", "v100-32g", "--precision", "bf16"), "cannot compute in bf16"),
        (("--strategy", "zero9"), "There are: single, ddp"),
        (("--layers", "2", "--hidden", "100", "--heads", "3", "--vocab", "9"), "--heads: 3 heads"),
        (("--micro-batch", "0"), "--micro-batch: From 1"),
        (("--mfu", "58"), "--mfu: A share of the peak, at most 1: 58 % is 0.58."),
        (("--mfu", "1.5"), "--mfu: More than 0.0001, and at most 1"),
        (("--price", "free"), "--price: Type an amount"),
        (("--price", "3.5", "--spot-off", "100"), "--spot-off: From 0 to less than 100"),
        (("--spot-off", "18"), "are of --price"),
        (("--budget", "0.000000001"), "--budget: An amount has at most six decimals"),
        (("--interrupted-hours", "0"), "--interrupted-hours: More than 0.0001"),
    ],
)
def test_bad_input_is_refused_in_words_with_the_option(words, said):
    done = run(*CLAIM, *words)
    assert done.exit_code in {1, 2}
    assert said in done.output
    assert "Traceback" not in done.output


def test_a_wrong_card_file_is_told(home: Path):
    home.mkdir()
    (home / "cards.toml").write_text("[cards.mine]\nmemory_gb = 1\n")
    done = run(*CLAIM)
    assert done.exit_code == 1
    assert "cards.mine: tflops_16bit is missing" in done.output


def test_the_cards_are_listed():
    assert "a100-80g\t80 GB\t312 TFLOP/s" in run("--cards").output


def test_a_notice_for_every_code_that_the_planner_has():
    root = Path(__file__).resolve().parents[2] / "gateway/core/planner"
    written = "".join(path.read_text() for path in root.glob("*.py"))
    for code in NOTICES:
        assert f'notice("{code}"' in written, code
    assert written.count('notice("') == len(NOTICES)
    assert set(SOURCES) == set(Source)
    assert set(FITS) == {one.value for one in Fit}
    assert set(CHANGES) == {"gpus", "strategy", "micro_batch", "recompute", "card"}


def test_a_plan_takes_less_than_50_ms_after_the_start():
    plan(ask(), cards=CARDS)
    took = []
    for _ in range(5):
        begun = time.process_time()
        plan(ask(), cards=CARDS)
        took.append(time.process_time() - begun)
    assert min(took) < 0.050


def test_how_often_spot_is_preempted_is_said_with_its_origin():
    words = ("--price", "3.5", "--spot-off", "18")
    assumed = told(*CLAIM, *words)["cost"]["interrupted"]
    assert assumed == [{"name": "spot", "every_hours": 6, "origin": "assumed", "preemptions": 0}]
    (asked,) = told(*CLAIM, *words, "--mtbf", "48")["cost"]["interrupted"]
    assert (asked["every_hours"], asked["origin"]) == (48, "asked")
    said = run(*CLAIM, *words).output
    assert "spot: preempted every 6 h (an assumption" in said
