"""`sluice waits` over two real traces says what others reckoned of them (traces/reference.json).

The traces lie beside the checkout and are read in place; where they are not, this is not tested.
"""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from gateway.cli import main

TRACES = Path(__file__).resolve().parents[3] / "shared" / "traces"
pytestmark = pytest.mark.skipif(
    not (TRACES / "reference.json").is_file(), reason="the traces beside the checkout are not there"
)
FILES = {
    "xdmod_phillips": ("xdmod_phillips.sacct.psv.gz", "sacct"),
    "drac_graham_2021": ("drac_graham_2021.csv.gz", "csv"),
}
NAMES = {"p90_cont_s": "p90_s", "p95_cont_s": "p95_s", "p99_cont_s": "p99_s"}
SHORT = {
    "wait_to_run_ratio_of_sums": "ratio_of_sums",
    "wait_to_run_mean_of_ratios_run_gt_0": "ratio_mean",
    "wait_to_run_median_of_ratios_run_gt_0": "ratio_median",
}


@pytest.fixture(scope="module", params=FILES)
def trace(request, tmp_path_factory):
    """What is asked of `sluice waits --wait submit`, and what the reference says."""
    file, kind = FILES[request.param]
    home = tmp_path_factory.mktemp(request.param)
    environment = {"SLUICE_HOME": str(home)}

    def sluice(*words):
        done = CliRunner().invoke(main, words, env=environment)
        assert done.exit_code == 0, done.output
        return done.output

    sluice("db", "upgrade")
    sluice("history", "import", str(TRACES / file), "--format", kind, "--timezone", "UTC")

    def ask(*words):
        asked = ("waits", "--json", "--wait", "submit", "--timezone", "UTC", *words)
        return json.loads(sluice(*asked))

    reference = json.loads((TRACES / "reference.json").read_text())["traces"][request.param]
    return ask, reference


@pytest.fixture(scope="module")
def by(trace):
    """The rows of a dimension by key; asked once each."""
    known = {}

    def _by(dimension):
        if dimension not in known:
            rows = trace[0]("--by", dimension)["rows"]
            known[dimension] = {row["key"]: row for row in rows}
        return known[dimension]

    return _by


def same(row, expected):
    """Every figure of a block of the reference, to its printed digits."""
    for name, value in expected.items():
        if name in {"wait", "run"}:
            assert {NAMES.get(k, k): v for k, v in value.items()}.items() <= row[name].items()
        elif name == "jobs_with_run_gt_0":
            shown = row["run"]["n"] - round(row["run"]["n"] * (row["run"]["share_zero"] or 0))
            assert shown == value
        elif name in {"mean_wait_s", "mean_run_s"}:
            assert row[name[5:-2]]["mean_s"] == value
        elif name == "sum_wait_s":
            assert row["wait"]["sum_s"] == value
        else:
            assert row[SHORT.get(name, name)] == value, name


def test_all_jobs(trace):
    ask, reference = trace
    same(ask(), reference["all"])


def test_jobs_with_cards_alone(trace):
    ask, reference = trace
    same(ask("--min-gpus", "1"), reference["gpu_jobs_only"])


@pytest.mark.parametrize(
    ("dimension", "block"), [("gpu_class", "by_gpu_class"), ("state", "by_state")]
)
def test_every_figure_by(trace, by, dimension, block):
    expected = {key: row for key, row in trace[1][block].items() if row["jobs"]}
    assert set(by(dimension)) == set(expected)
    for key, row in expected.items():
        same(by(dimension)[key], row)


def test_jobs_by_number_of_cards(trace, by):
    counts = {key: row["jobs"] for key, row in by("gpus").items()}
    assert counts == trace[1]["by_gpu_count"]


@pytest.mark.parametrize("cards", ["0", "1"])
def test_shares_of_states(trace, cards):
    ask, reference = trace
    found = ask("--by", "state", "--min-gpus", cards)
    shares = {row["key"]: round(row["jobs"] / found["jobs"], 6) for row in found["rows"]}
    wanted = {"0": "state_share_all", "1": "state_share_gpu_jobs"}[cards]
    assert shares == reference[wanted]


@pytest.mark.parametrize(
    ("dimension", "total", "block"),
    [
        ("partition", "queues_total", "by_queue_top"),
        ("group", "groups_total", "by_group_top_gpu_hours"),
    ],
)
def test_partitions_and_groups(trace, by, dimension, total, block):
    rows = by(dimension)
    assert len(rows) == trace[1][total]
    for name, row in trace[1][block].items():
        # The reference puts a word before names that are numbers.
        same(rows[name.rpartition(" ")[2]], row)


def test_the_histogram_in_the_bounds_of_xdmod(trace):
    ask, reference = trace
    bars = [bar["waits"] for bar in ask("--histogram", "xdmod")["histogram"]]
    assert bars == list(reference["wait_histogram_xdmod_buckets"].values())


@pytest.mark.parametrize("time", ["submit", "start", "end"])
def test_days(trace, by, time):
    expected = trace[1][f"by_{time}_day"]
    assert list(by(f"{time}_day")) == list(expected)
    for day, row in expected.items():
        same(by(f"{time}_day")[day], row)


def test_first_and_last_times(trace):
    ask, reference = trace
    found = ask()
    for name, block in (("submitted", "submit_range"), ("ended", "end_range")):
        assert [at[:19].replace("T", " ") for at in found[name]] == reference[block]
