"""When credit runs dry at a pace, and what is known of a run that nobody can charge."""

from datetime import timedelta

import pytest

from gateway.core.burndown import Part, runs_dry
from gateway.core.evidence import Evidence, evidence, parse_span
from gateway.testing.builders import NOW

DAY = timedelta(days=1)
START = NOW - 5 * DAY


def test_what_expires_first_is_used_first_and_the_rest_of_it_is_lost() -> None:
    parts = [Part(100), Part(50, NOW + 2 * DAY)]
    assert runs_dry(parts, per_day=10, now=NOW) == NOW + 12 * DAY
    assert runs_dry(parts, per_day=50, now=NOW) == NOW + 3 * DAY


def test_nothing_left_is_dry_now_and_nothing_spent_is_never() -> None:
    assert runs_dry([], per_day=10, now=NOW) == NOW
    assert runs_dry([Part(-5)], per_day=10, now=NOW) == NOW
    assert runs_dry([Part(5)], per_day=0, now=NOW) is None
    assert runs_dry([Part(10**18)], per_day=1, now=NOW) is None
    assert runs_dry([Part(2000)], per_day=1, now=NOW) is None


def test_credit_that_lapses_unused_is_dry_on_its_day() -> None:
    assert runs_dry([Part(5, NOW + DAY)], per_day=0, now=NOW) == NOW + DAY


def _evidence(**changes: object) -> Evidence:
    facts = {
        "start": START,
        "end": None,
        "elapsed_seconds": 432_000,
        "last_seen": START + timedelta(hours=26, minutes=58),
        "limit_minutes": 1440,
        "alloc_tres": "cpu=8,gres/gpu:a100=8,gres/gpu=8",
        "gpus_asked": 8,
        "gpu_type": None,
    }
    return evidence(**(facts | changes))  # type: ignore[arg-type]


def test_an_open_record_is_never_counted_until_today() -> None:
    found = _evidence()
    assert found.recorded is None
    assert found.by_clock == 97_080
    assert found.by_limit == 86_400
    assert found.gpus == {"a100": 8}


def test_a_mended_record_of_nothing_is_not_believed() -> None:
    found = _evidence(end=START, elapsed_seconds=0)
    assert (found.recorded, found.by_clock, found.by_limit) == (0, 97_080, 86_400)


@pytest.mark.parametrize(
    ("changes", "gpus"),
    [
        ({"alloc_tres": "cpu=8"}, {}),
        ({"alloc_tres": "cpu=8", "gpu_type": "a100"}, {"a100": 8}),
        ({"alloc_tres": "gres/gpu=2", "gpu_type": "a100"}, {"a100": 2}),
        ({"alloc_tres": "nonsense"}, {}),
    ],
)
def test_cards_as_far_as_they_are_known(changes: dict[str, object], gpus: dict[str, int]) -> None:
    assert _evidence(**changes, limit_minutes=None).gpus == gpus


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("24", 86_400), ("1.5", 5400), ("26:58:00", 97_080), ("1-3", 97_200), ("0:00:05", 5)],
)
def test_a_span_of_time_is_read(text: str, seconds: int) -> None:
    assert parse_span(text) == seconds


@pytest.mark.parametrize("text", ["", "-1", "a day", "1:60:00", "1e3", "1,5", "99999999"])
def test_no_span_of_time(text: str) -> None:
    with pytest.raises(ValueError, match="no span"):
        parse_span(text)
