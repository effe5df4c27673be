import pytest

from gateway.core.mfu import Model, card_of, mfu, model_of
from gateway.services.plan import load_cards


def test_the_share_of_the_peak() -> None:
    model = model_of({"params": 1e9})
    assert model == Model(6e9, exact=False, params=1e9)
    # 8 x A100 at 312 TFLOP/s would do 416,000 tokens a second of 6e9 FLOPs.
    assert mfu(208_000, model, cards=8, peak_flops=312e12) == pytest.approx(0.5)


def test_flops_that_the_script_gives_itself_count_before_its_parameters() -> None:
    assert model_of({"params": 1e9, "flops_per_token": 7e9}) == Model(7e9, exact=True, params=1e9)


@pytest.mark.parametrize("facts", [{}, {"params": 0}, {"params": "many"}, {"flops_per_token": 0}])
def test_without_numbers_there_is_no_share(facts: dict[str, object]) -> None:
    assert model_of(facts) is None


def test_without_cards_there_is_no_share() -> None:
    assert mfu(1.0, Model(1.0, exact=True), cards=0, peak_flops=1e12) is None


@pytest.mark.parametrize(
    ("gpu_type", "tflops"),
    [("a100", 312), ("a100_80g", 312), ("A100-80G", 312), ("rtx4090", 165), ("k80", None)],
)
def test_the_peak_of_a_clusters_type(gpu_type: str, tflops: float | None) -> None:
    card = card_of(gpu_type, load_cards())
    assert (card.tflops_16bit if card else None) == tflops


def test_a_name_that_stands_for_cards_of_several_peaks_has_none() -> None:
    cards = load_cards()
    names = {name for card in cards.values() for name in card.resources}
    for name in names - set(cards):
        peaks = {card.tflops_16bit for card in cards.values() if name in card.resources}
        assert (card_of(name, cards) is None) == (len(peaks) > 1), name
    assert card_of(None, cards) is None
