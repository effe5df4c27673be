"""The lines are a person's own: whatever they hold, nothing raises and nothing foreign counts."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.runfolder import job_key, node_of, run_folder, run_of, telemetry
from gateway.core.training import sums
from gateway.core.training.lines import (
    MAX_LINE_BYTES,
    Metric,
    Whose,
    event,
    measured,
    sample,
    split,
)

MINE = Whose(key="120_3", since=1000.0, until=2000.0, restarts=9)


def metric(text: str, whose: Whose) -> Metric | None:
    found = measured(text, whose)
    return found.metric if found else None


def line(**facts: Any) -> str:
    return json.dumps({"at": 1500.0, "job": "120_3", "restart": 0, **facts})


def test_an_event_with_its_facts() -> None:
    found = event(line(kind="saved", step=616, seconds=1.5, bytes=10, path="/x", more=1), MINE)
    assert found is not None
    assert (found.kind, found.step, found.at) == ("saved", 616, 1500.0)
    assert found.facts == {"seconds": 1.5, "bytes": 10, "path": "/x"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '"120_3"',
        '{"120_3": ' * 300,
        "[" * 3900 + '"120_3"',
        line(kind="saved", step=1)[:-4],
        line(kind="saved", job="120_4"),
        line(kind="saved", job=120),
        line(kind="saved", at=999.0),
        line(kind="saved", at=2001.0),
        line(kind="saved", at="1500"),
        line(kind="saved", at=True),
        line(kind="saved", at=float("nan")),
        line(kind="saved", restart=-1),
        line(kind="saved", restart=10),
        line(kind="saved").replace("1500.0", "1" + "0" * 3000),
        line(kind="saved").replace("1500.0", "1e999"),
        line(kind="paid", amount=5),
        line(kind=["saved"]),
        line(),
    ],
)
def test_a_foreign_torn_or_hostile_line_is_no_event(text: str) -> None:
    assert event(text, MINE) is None


def test_facts_of_a_wrong_kind_are_left_out_and_the_event_stays() -> None:
    found = event(
        line(kind="end", code="0", action="rm -rf", reason="a\nb\x00\ud800c" + "x" * 999, step=1.5),
        MINE,
    )
    assert found is not None
    assert found.step is None
    assert found.facts == {"reason": "abc" + "x" * 294}
    stall = event(line(kind="stall", signs=["log", "<b>", {}], rule="hold", text="t"), MINE)
    assert stall is not None
    assert stall.facts == {"signs": ["log"], "rule": "hold", "text": "t"}


def test_numbers_beyond_belief_are_left_out_of_a_metric() -> None:
    found = metric(line(step=7, loss=-1.5, tokens=12.0, seconds=-1, peak_bytes=2**60), MINE)
    assert found is not None
    assert (found.step, found.loss, found.tokens) == (7, -1.5, 12)
    assert (found.seconds, found.peak_bytes) == (None, None)
    assert metric(line(step=-1), MINE) is None
    assert metric(line(loss=1.0), MINE) is None
    assert metric(line(step=2**60), MINE) is None


def test_a_look_at_a_node() -> None:
    cards = [{"i": 0, "util": 250.0, "mem": 5}, {"i": "x"}, 7, {"i": 1, "util": None}, {"i": 5000}]
    found = sample(line(procs=2, expected=4, cards=cards), MINE)
    assert found is not None
    assert (found.procs, found.expected) == (2, 4)
    assert [(card.i, card.util, card.mem) for card in found.cards] == [
        (0, 100.0, 5),
        (1, None, None),
    ]
    assert sample(line(cards="none"), MINE) is not None


@given(st.text() | st.binary().map(lambda raw: raw.decode("latin-1")))
def test_no_text_at_all_raises(text: str) -> None:
    for read in (event, metric, sample):
        read(text, MINE)
        read(f'{{"job": "120_3", "at": 1500, "kind": "saved", "step": {text}}}', MINE)


def test_the_last_line_waits_for_its_end() -> None:
    text = "one\ntwo\nthr"
    assert split(text, size=11) == (["one", "two"], 8)
    assert split("é\né", size=5) == (["é"], 3)


def test_what_is_too_long_to_be_a_line_is_given_up() -> None:
    long = "x" * (MAX_LINE_BYTES + 1)
    assert split(long, size=len(long)) == ([], len(long))
    assert split(f"{long}\nshort\n", size=len(long) + 7) == (["short"], len(long) + 7)
    # A byte that is no text counts as three when it is written again.
    assert split("ok\n\ufffd", size=4) == (["ok"], 4)


@given(st.lists(st.text(alphabet="ab", max_size=5)), st.integers(min_value=1, max_value=7))
def test_whatever_the_pieces_each_line_is_read_once(lines: list[str], piece: int) -> None:
    raw = "".join(f"{one}\n" for one in lines)
    found: list[str] = []
    offset, size = 0, piece
    while offset < len(raw):
        got, read = split(raw[offset : offset + size], size=len(raw[offset : offset + size]))
        found += got
        offset += read
        size += 1  # as a file that grows: a line longer than the piece is waited for
    assert found == [one for one in lines if one]


METRICS = st.lists(
    st.builds(
        lambda at, step: metric(
            line(at=at, step=step, loss=1.0, tokens=3), Whose("120_3", 0, 1e9, 0)
        ),
        st.floats(min_value=1000, max_value=9000),
        st.integers(min_value=0, max_value=99),
    )
)


@given(METRICS, st.integers(min_value=0, max_value=20))
def test_sums_are_the_same_whatever_comes_in_which_piece(found: list[Any], cut: int) -> None:
    whole = sums.points(found, 1000.0)
    one, other = sums.points(found[:cut], 1000.0), sums.points(found[cut:], 1000.0)
    for key, point in other.items():
        one[key] = sums.add(one[key], point) if key in one else point
    for key, point in whole.items():
        same = one[key]
        assert (same.lines, same.tokens, same.loss) == (point.lines, point.tokens, point.loss)
        assert (same.first_at, same.last_at) == (point.first_at, point.last_at)
    assert sum(point.lines for point in whole.values()) == len(found)


def test_a_minute_of_a_node() -> None:
    looks = [
        sample(line(at=1500.0 + n, procs=n, cards=[{"i": 0, "util": n * 2.0, "mem": n}]), MINE)
        for n in range(3)
    ]
    [minute] = sums.minutes([one for one in looks if one]).values()
    [card] = minute.cards
    assert (minute.at, minute.procs, card.util, card.util_max, card.mem_max) == (
        1500,
        2,
        2.0,
        4.0,
        2,
    )
    assert sums.load(sums.dump(minute.cards)) == minute.cards
    assert minute.utils == [2.0]


def test_where_a_run_folder_is() -> None:
    key = job_key(123, None, None)
    assert key == "123"
    assert run_of(None, job_name="train", key=key, array_task=None) == "train-123"
    assert run_of("long", job_name="train", key=key, array_task=None) == "long"
    assert job_key(125, 120, 3) == "120_3"
    assert run_of(None, job_name="train", key="120_3", array_task=3) == "train-120_3"
    assert run_of("long", job_name="train", key="120_3", array_task=3) == "long_3"
    assert run_of(None, job_name="a/b", key="7", array_task=None) == "a-b-7"
    assert run_folder("/home/a/", "long") == "/home/a/sluice-runs/long"


@pytest.mark.parametrize("name", ["..", ".", "a/b", "a\0b", "a\nb"])
def test_a_name_that_leads_elsewhere_is_no_run(name: str) -> None:
    assert run_of(name, job_name="train", key="1", array_task=None) is None


def test_a_nodes_file() -> None:
    assert telemetry("a100-1") == "telemetry/a100-1.jsonl"
    assert node_of("telemetry/a100-1.jsonl") == "a100-1"
    assert node_of("events.jsonl") is None
    assert telemetry("../../etc/passwd") is None
