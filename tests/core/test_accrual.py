"""What a job has accrued, and what a cheaper QoS would have cost: exact, never a guess."""

from datetime import UTC, datetime, timedelta

from gateway.core.accrual import OnNodes, accrued, in_cheapest_qos
from gateway.core.credits import MILLION, Credits
from gateway.core.pricing import Item, Preempted, Price, PriceList, QosTerms

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
LONG_AGO = START - timedelta(days=9)
PRICES = PriceList(
    (
        Price("a100", Credits(3_500_000), LONG_AGO),
        Price("a100", Credits(9_000_000), START + timedelta(minutes=30)),
    ),
    (QosTerms("spot", 820_000, Preempted.FREE, LONG_AGO),),
)


def on_nodes(minutes: int, **values: object) -> OnNodes:
    facts: dict[str, object] = {
        "start": START,
        "until": START + timedelta(minutes=minutes),
        "limit_minutes": 120,
        "gpus": 8,
        "kind": "a100",
        "cpus": 32,
        "qos": "normal",
    }
    return OnNodes(**(facts | values))  # type: ignore[arg-type]


def test_it_accrues_by_the_price_in_force_at_its_start() -> None:
    assert accrued(on_nodes(90), PRICES) == 42 * MILLION


def test_it_accrues_no_longer_than_its_limit() -> None:
    assert accrued(on_nodes(600), PRICES) == 56 * MILLION
    assert accrued(on_nodes(600, limit_minutes=None), PRICES) == 280 * MILLION


def test_the_qos_factor_counts_as_in_the_charge() -> None:
    assert accrued(on_nodes(60, qos="SPOT"), PRICES) == 22_960_000


def test_a_clock_that_lags_behind_makes_nothing_negative() -> None:
    assert accrued(on_nodes(-5), PRICES) == 0


def test_nobody_guesses_a_type_or_a_price() -> None:
    assert accrued(on_nodes(60, kind=None), PRICES) is None
    assert accrued(on_nodes(60, kind="h100"), PRICES) is None
    assert accrued(on_nodes(60, start=LONG_AGO - timedelta(days=1)), PRICES) is None


def test_a_job_without_gpus_costs_what_its_cpus_do() -> None:
    assert accrued(on_nodes(60, gpus=0, kind=None), PRICES) == 0


def test_the_cheapest_qos_is_told_and_no_dearer_one() -> None:
    used = [(Item("a100", 8, 3600, Credits(3_500_000), MILLION), START)]
    found = in_cheapest_qos(used, "normal", PRICES)
    assert found is not None
    assert (found.qos, found.total, found.saves) == ("spot", 22_960_000, 5_040_000)
    cheap = [(Item("a100", 8, 3600, Credits(3_500_000), 820_000), START)]
    assert in_cheapest_qos(cheap, "Spot", PRICES) is None
    assert in_cheapest_qos([], "normal", PRICES) is None
