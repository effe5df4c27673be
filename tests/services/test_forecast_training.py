"""The training of forecasts: when it is due, what it learns from, killed, and on broken files."""

import io
import json
import os
import pickle
import shutil
import signal
import subprocess
import time
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from gateway.core.forecast import Ask, Forecast, Here, NoForecast
from gateway.history import blocks
from gateway.history.forecasting.model import Model
from gateway.history.importing.load import Given
from gateway.services import forecast_train, forecaster, keep_history
from gateway.services.forecaster import FOLDER, Forecaster
from gateway.services.import_set import import_set
from gateway.testing import builders as b

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
HERE = Here("lab", ("mixed", "cpu"))
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
JOBS = 3000
MODEL, QUEUE = "model.npz", "queue.npz"


def file_of_jobs(file: Path, *, cluster: str = "lab", jobs: int = JOBS) -> None:
    """20 days of one partition, in which some ask for a type of card."""
    chance = np.random.default_rng(7)
    lines = [
        "JobIDRaw,Cluster,Submit,Start,End,State,Account,Partition,NNodes,NCPUS,AllocTRES,ReqTRES,"
        "Timelimit"
    ]
    for number in range(jobs):
        kind = chance.choice(["a100", "h100", ""])
        given = kind or chance.choice(["a100", "h100"])
        wait = {"a100": 600, "h100": 18_000, "": 1500}[kind] * chance.lognormal(0, 0.3)
        submit = NOW - timedelta(seconds=int(chance.integers(0, 20 * 86_400)))
        start = submit + timedelta(seconds=int(wait))
        times = ",".join(f"{at:%Y-%m-%dT%H:%M:%S}" for at in (submit, start, start + HOUR))
        asked = f"cpu=8;gres/gpu=1;gres/gpu:{kind}=1" if kind else "cpu=8;gres/gpu=1"
        held = f"cpu=8;gres/gpu=1;gres/gpu:{given}=1"
        lines.append(
            f"{number + 1},{cluster},{times},COMPLETED,nlp,mixed,1,8,"
            f'"{held.replace(";", ",")}","{asked.replace(";", ",")}",02:00:00'
        )
    file.write_text("\n".join(lines) + "\n")


def put(home: Path, **given: object) -> Path:
    """An imported set, beside a history of our own that is not there yet."""
    file = home / "jobs.csv"
    file_of_jobs(file, **given)  # type: ignore[arg-type]
    report = import_set(
        Given(str(file), "csv", "old", "UTC", NOW), imports=home / "imports", keep=len
    )
    assert report.loaded.held == 0
    return home / "history"


def ask(kind: str | None = None, **given: object) -> Ask:
    facts = {"group": "nlp", "partition": "mixed", "qos": None, "gpus": 1, "gpu_type": kind}
    facts |= {"nodes": 1, "cpus": 8, "limit_minutes": 120}
    return Ask(**({"at": NOW} | facts | given))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A history with a model and a queue in it."""
    history = put(tmp_path_factory.mktemp("home"))
    forecast_train.train(history, now=NOW, here=HERE)
    forecaster.answers_now(history, now=NOW, here=HERE, keep=True)
    return history


@pytest.fixture
def copied(learned: Path, tmp_path: Path) -> Path:
    """The same without the set that it was learned from."""
    shutil.copytree(learned / FOLDER, tmp_path / "history" / FOLDER)
    return tmp_path / "history"


@pytest.fixture
def whole(learned: Path, tmp_path: Path) -> Path:
    shutil.copytree(learned.parent, tmp_path, dirs_exist_ok=True)
    return tmp_path / "history"


def test_a_web_process_asks_of_types_as_the_worker_does(learned: Path) -> None:
    asks = [ask("a100"), ask("h100"), ask(), ask("b200")]
    whole = forecaster.answers_now(learned, now=NOW, here=HERE).forecast(asks)
    assert Forecaster(learned).forecast(asks) == whole
    assert len(set(whole)) == 4
    assert whole[3] is NoForecast.TOO_THIN  # nobody has waited for one


def test_without_cards_a_type_says_nothing(learned: Path) -> None:
    one, other = Forecaster(learned).forecast([ask(gpus=0), ask("h100", gpus=0)])
    assert isinstance(one, Forecast)
    assert one == other


@pytest.mark.parametrize(
    "odd",
    [
        {"limit_minutes": 0},
        {"limit_minutes": None},
        {"limit_minutes": 10 * 525_600},
        {"gpus": 0, "cpus": 0},
        {"gpus": 50_000, "nodes": 6250, "cpus": 2**31},
        {"group": ""},
        {"group": "\N{GRINNING FACE}" * 300},
        {"submitted": NOW - timedelta(days=4000)},
        {"submitted": NOW + DAY},
        {"priority": -1},
    ],
)
def test_odd_requests_get_an_answer(learned: Path, odd: dict[str, object]) -> None:
    (found,) = Forecaster(learned).forecast([ask(**odd)])
    assert isinstance(found, Forecast)
    assert 0 <= found.p50_s <= (found.p90_s or 0)


@pytest.mark.parametrize("partition", ["", "gone", "mixed ", "x" * 5000])
def test_an_unknown_partition_is_too_little_known(learned: Path, partition: str) -> None:
    assert Forecaster(learned).forecast([ask(partition=partition)]) == [NoForecast.TOO_THIN]


@pytest.mark.parametrize(
    ("here", "teaches"),
    [
        (HERE, True),
        (Here("LAB", ("mixed",)), True),
        (Here("lab", ("renamed",)), False),
        (Here("elsewhere", ("mixed",)), False),
        (Here("lab", ()), False),
        (None, False),
    ],
)
def test_a_set_of_this_cluster_teaches_a_new_site(
    tmp_path: Path, here: Here | None, teaches: bool
) -> None:
    """Being due and what is learned from agree."""
    history = put(tmp_path, jobs=300)
    assert forecast_train.is_due(history, now=NOW, here=here) is teaches
    waits = forecast_train.train(history, now=NOW, here=here).waits
    assert 250 < waits <= 300 if teaches else waits == 0


def test_a_set_teaches_of_the_time_before_our_own_rows_alone(tmp_path, begin, read) -> None:
    """The same jobs may stand in both: none counts twice."""
    history, ended = put(tmp_path, jobs=300), NOW - 12 * DAY
    job = b.add_job(begin, state="COMPLETED", partition="mixed", submit_time=ended - 2 * HOUR)
    times = {"submit_time": ended - 2 * HOUR, "eligible_time": ended - 2 * HOUR}
    b.add_run(begin, job, start_time=ended - HOUR, end_time=ended, **times)
    keep_history.keep(history, begin=begin, read=read, now=NOW)
    found = forecast_train.train(history, now=NOW, here=HERE).waits
    assert 80 < found < 170


def test_few_jobs_are_nothing_to_learn_from(tmp_path: Path) -> None:
    assert not forecast_train.is_due(put(tmp_path, jobs=150), now=NOW, here=HERE)
    assert not forecast_train.is_due(tmp_path / "none", now=NOW, here=HERE)


def tried(history: Path, at: datetime) -> None:
    file = history / FOLDER / "tried"
    file.touch()
    os.utime(file, (at.timestamp(), at.timestamp()))


def own(history: Path, jobs: int = 5000) -> None:
    blocks.save(history, blocks.Manifest({}, jobs, NOW))


def test_it_is_due_a_day_after_one_that_came_to_an_end(copied: Path) -> None:
    own(copied)
    tried(copied, NOW)
    times = [timedelta(minutes=1), HOUR, 23 * HOUR, DAY, 30 * DAY]
    found = [forecast_train.is_due(copied, now=NOW + passed) for passed in times]
    assert found == [False, False, False, True, True]


def test_it_is_due_an_hour_after_one_that_was_killed(copied: Path) -> None:
    own(copied)
    tried(copied, NOW + DAY)  # and the model is still the one of NOW
    found = [
        forecast_train.is_due(copied, now=NOW + DAY + passed)
        for passed in (timedelta(minutes=59), HOUR, 2 * HOUR)
    ]
    assert found == [False, True, True]


def test_a_clock_that_was_set_back_does_not_stop_it(copied: Path) -> None:
    own(copied)
    tried(copied, NOW + 400 * DAY)
    assert forecast_train.is_due(copied, now=NOW)


def test_looking_whether_it_is_due_reads_no_trees(copied: Path) -> None:
    with zipfile.ZipFile(copied / FOLDER / MODEL) as whole:
        facts = whole.read("facts.npy")
    with zipfile.ZipFile(copied / FOLDER / MODEL, "w") as file:
        file.writestr("facts.npy", facts)
    own(copied)
    tried(copied, NOW)
    assert not forecast_train.is_due(copied, now=NOW + 2 * HOUR)
    looked = forecast_train.look(copied)
    assert looked is not None
    assert looked.calibrated
    assert JOBS * 0.9 < looked.waits <= JOBS


def as_arrays(file: Path) -> dict[str, np.ndarray]:
    with np.load(file) as found:
        return {name: found[name] for name in found.files}


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def without_its_middle(file: Path) -> None:
    """As a file system that broke down leaves it: the right length, and nothing in it."""
    whole = bytearray(file.read_bytes())
    whole[200 : len(whole) // 2] = bytes(len(whole) // 2 - 200)
    file.write_bytes(whole)


def a_text(file: Path) -> None:
    file.write_text("nothing")


def one_array(file: Path) -> None:
    np.save(file.with_suffix(""), np.zeros(3))
    file.with_suffix(".npy").replace(file)


class _Runs:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, (f"touch {os.environ['WITNESS']}",)


def a_pickle(file: Path) -> None:
    file.write_bytes(pickle.dumps(_Runs()))


def a_pickle_inside(file: Path) -> None:
    arrays = as_arrays(file)
    first = next(iter(arrays))
    held = io.BytesIO()
    np.lib.format.write_array(held, np.array([_Runs()], dtype=object), allow_pickle=True)
    with zipfile.ZipFile(file, "w") as archive:
        for name, one in arrays.items():
            with archive.open(f"{name}.npy", "w") as member:
                if name == first:
                    member.write(held.getvalue())
                else:
                    np.lib.format.write_array(member, one)


def a_claim_of_size(file: Path) -> None:
    """A header that says that terabytes follow."""
    arrays = as_arrays(file)
    header = io.BytesIO()
    facts = {"descr": "<f4", "fortran_order": False, "shape": (2**42,)}
    np.lib.format.write_array_header_1_0(header, facts)
    with zipfile.ZipFile(file, "w") as archive:
        for name in arrays:
            archive.writestr(f"{name}.npy", header.getvalue())


def without_an_array(file: Path) -> None:
    arrays = as_arrays(file)
    arrays.pop(sorted(arrays)[0])
    np.savez(file, **arrays)


def of_other_types(file: Path) -> None:
    np.savez(file, **{name: np.array(["x", "y"]) for name in as_arrays(file)})


def emptied(file: Path) -> None:
    file.write_bytes(b"")


def empty_arrays(file: Path) -> None:
    np.savez(file, **{name: one[:0] if one.ndim else one for name, one in as_arrays(file).items()})


BREAKS: list[Callable[[Path], None]] = [
    cut,
    emptied,
    without_its_middle,
    a_text,
    one_array,
    a_pickle,
    a_pickle_inside,
    a_claim_of_size,
    without_an_array,
    of_other_types,
    empty_arrays,
]


@pytest.mark.parametrize("name", [MODEL, QUEUE])
@pytest.mark.parametrize("breaks", BREAKS)
def test_a_broken_file_says_nothing_and_breaks_nothing(
    copied: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    breaks: Callable[[Path], None],
    name: str,
) -> None:
    monkeypatch.setenv("WITNESS", str(tmp_path / "it-ran"))
    before = Forecaster(copied)
    first = before.forecast([ask("a100")])
    time.sleep(0.002)  # of another moment than the good one
    breaks(copied / FOLDER / name)
    assert before.forecast([ask("a100")]) == first  # the last good one goes on
    assert Forecaster(copied).forecast([ask("a100")]) == [NoForecast.NO_HISTORY]
    assert not (tmp_path / "it-ran").exists()
    # What the worker does with it: asks from the history, trains and writes anew.
    assert forecaster.answers_now(copied, now=NOW, here=HERE, keep=True).queue is not None
    if name == QUEUE:
        assert isinstance(Forecaster(copied).forecast([ask("a100")])[0], Forecast)
        return
    own(copied)
    tried(copied, NOW)
    forecast_train.is_due(copied, now=NOW + 2 * HOUR)
    assert not forecast_train.train(copied, now=NOW).calibrated


def changed(file: Path, change: Callable[[dict[str, np.ndarray]], None]) -> None:
    arrays = as_arrays(file)
    change(arrays)
    np.savez(file, **arrays)


def facts_with(**changes: object) -> Callable[[dict[str, np.ndarray]], None]:
    def change(arrays: dict[str, np.ndarray]) -> None:
        facts = json.loads(str(arrays["facts"])) | changes
        arrays["facts"] = np.array(json.dumps(facts))

    return change


def trees_with(part: str, value: float) -> Callable[[dict[str, np.ndarray]], None]:
    def change(arrays: dict[str, np.ndarray]) -> None:
        arrays[f"0_0.5_{part}"].flat[5] = value

    return change


def facts_of(value: object) -> Callable[[dict[str, np.ndarray]], None]:
    def change(arrays: dict[str, np.ndarray]) -> None:
        arrays["facts"] = np.array(json.dumps(value))

    return change


@pytest.mark.parametrize(
    "change",
    [
        facts_with(shape=2),
        facts_with(shape=None),
        facts_with(moment=10**18),
        facts_with(moment="now"),
        facts_with(moments=list(range(900))),
        facts_with(shifts=[1.0]),
        facts_with(shifts=[1.0, float("nan")]),
        facts_with(shifts="ab"),
        facts_with(started=[]),
        facts_with(typed={"mixed": 7}),
        facts_with(typed={"mixed": {"a100": "many"}}),
        facts_of([]),
        facts_of(None),
        trees_with("children", 0),  # a circle
        trees_with("children", 10**9),
        trees_with("children", -1),
        trees_with("feature", 10**6),
        trees_with("roots", 10**9),
        trees_with("value", np.inf),
    ],
)
def test_a_model_that_could_not_be_walked_is_none(
    copied: Path, change: Callable[[dict[str, np.ndarray]], None]
) -> None:
    changed(copied / FOLDER / MODEL, change)
    with pytest.raises(ValueError):  # noqa: PT011  # whatever is wrong with it
        Model.load(copied / FOLDER)
    assert Forecaster(copied).forecast([ask()]) == [NoForecast.NO_HISTORY]


def started(history: Path, now: datetime) -> "subprocess.Popen[bytes]":
    return forecast_train.start(history, now=now, here=HERE)


def left(history: Path) -> set[str]:
    return {file.name for file in (history / FOLDER).iterdir()}


def at_once(_: Path) -> bool:
    return True


def while_it_learns(history: Path) -> bool:
    """It has the lock, and nothing is written."""
    with blocks.writing(history / FOLDER, wait=False) as free:
        return not free


def while_it_writes(history: Path) -> bool:
    return (history / FOLDER / f"new-{MODEL}").exists()


def killed(history: Path, now: datetime, moment: Callable[[Path], bool]) -> None:
    """A training, by a signal that nobody can catch."""
    child = started(history, now)
    until = time.monotonic() + 60
    while not moment(history) and child.poll() is None and time.monotonic() < until:
        time.sleep(0.001)
    child.send_signal(signal.SIGKILL)
    assert child.wait(30) == -signal.SIGKILL


def test_killed_at_any_moment_the_old_model_answers_and_the_next_turn_trains(whole: Path) -> None:
    """Real processes: some seconds."""
    first = Forecaster(whole).forecast([ask("a100")])
    good = (whole / FOLDER / MODEL).read_bytes()
    later = NOW + DAY
    assert forecast_train.is_due(whole, now=later, here=HERE)
    for moment in (at_once, while_it_learns, while_it_writes, while_it_writes):
        killed(whole, later, moment)
        assert (whole / FOLDER / MODEL).read_bytes() == good
        assert left(whole) <= {MODEL, QUEUE, f"new-{MODEL}", "tried", "lock"}
    assert Forecaster(whole).forecast([ask("a100")]) == first
    assert not forecast_train.is_due(whole, now=later + HOUR / 2, here=HERE)
    assert forecast_train.is_due(whole, now=later + HOUR, here=HERE)
    assert started(whole, later + HOUR).wait(120) == 0
    looked = forecast_train.look(whole)
    assert looked is not None
    assert looked.moment == later + HOUR
    assert left(whole) == {MODEL, QUEUE, "tried", "lock"}
    assert not forecast_train.is_due(whole, now=later + 3 * HOUR, here=HERE)


def test_two_trainings_wait_for_each_other(whole: Path) -> None:
    children = [started(whole, NOW + hours * HOUR) for hours in (1, 2)]
    assert [child.wait(120) for child in children] == [0, 0]
    assert Model.load(whole / FOLDER).moment > NOW.timestamp()


def test_what_a_killed_writer_of_the_history_put_aside_is_swept(tmp_path, begin, read) -> None:
    history = tmp_path / "history"
    (history / "spill" / "deep").mkdir(parents=True)
    (history / "spill" / "duckdb_temp_storage-0.tmp").write_bytes(bytes(1000))
    b.add_job(begin)
    keep_history.keep(history, begin=begin, read=read, now=NOW)
    assert not (history / "spill").exists()
