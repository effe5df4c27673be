"""The form of a checkpoint: whatever is killed, the newest complete one is a whole one."""

import json
import os
import signal
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice_train.checkpoint import (
    begin,
    complete,
    listed,
    move_incomplete,
    newest,
    prune,
    seal,
    writing,
)

CHANGES = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir"}


def save(folder: Path, step: int, *, world: int = 1) -> None:
    with writing(folder, step, world) as inside:
        (inside / "model.bin").write_bytes(_weights(step))
        (inside / "optimizer").mkdir()
        (inside / "optimizer" / "rank-0.bin").write_bytes(_weights(step) * 2)


def _weights(step: int) -> bytes:
    return f"weights of step {step} ".encode() * 50


def _is_whole(path: Path, step: int) -> bool:
    parts = (path / "model.bin", path / "optimizer" / "rank-0.bin")
    return [part.read_bytes() for part in parts] == [_weights(step), _weights(step) * 2]


def _killed_before(operation: int, act, *arguments) -> bool:
    """Run `act` in a process that dies before its n-th operation on files; whether it died.

    Forks, because a process that is dead by KILL runs no `finally`, and nothing less proves it.
    """
    child = os.fork()
    if child == 0:
        count = 0

        def die(event: str, _: object) -> None:
            nonlocal count
            if event in CHANGES:
                count += 1
                if count == operation:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(die)
        try:
            act(*arguments)
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def test_killed_between_any_two_operations_the_newest_is_the_earlier_or_the_new_one(tmp_path):
    operation, seen = 0, set()
    died = True
    while died:
        operation += 1
        folder = tmp_path / str(operation)
        save(folder, 100)
        died = _killed_before(operation, save, folder, 200)
        found = newest(folder)
        assert found is not None
        assert _is_whole(found.path, found.step)
        seen.add(found.step)
        move_incomplete(folder)
        assert newest(folder) == found
        save(folder, 200)
        assert _is_whole(newest(folder).path, 200)
    assert seen == {100, 200}
    assert operation > 10


def test_killed_while_old_ones_are_deleted_the_newest_stay_whole(tmp_path):
    operation, died = 0, True
    while died:
        operation += 1
        folder = tmp_path / str(operation)
        for step in (1, 2, 3, 4):
            save(folder, step)
        died = _killed_before(operation, prune, folder, 2)
        assert [found.step for found in listed(folder)][-2:] == [3, 4]
        assert all(_is_whole(found.path, found.step) for found in listed(folder))
        move_incomplete(folder)
        prune(folder, 2)
        assert {path.name for path in folder.iterdir()} <= {
            "step-000000003",
            "step-000000004",
            "incomplete",
        }
    assert operation > 5


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 10**10), min_size=1, max_size=6, unique=True), st.integers(1, 4))
def test_the_highest_steps_are_kept_in_whatever_order_they_were_saved(steps, keep):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for step in steps:
            save(folder, step)
        pruned = prune(folder, keep)
        assert [found.step for found in listed(folder)] == sorted(steps)[-keep:]
        assert sorted(found.step for found in pruned) == sorted(steps)[:-keep]


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_one_with_any_file_cut_or_gone_is_not_complete(data):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save(folder, 7)
        path = folder / "step-000000007"
        files = sorted(part for part in path.rglob("*") if part.is_file())
        victim = data.draw(st.sampled_from(files))
        content = victim.read_bytes()
        # The last byte of the manifest is the end of its line: without it, it still says all.
        cut = int(data.draw(st.floats(0, 1)) * (len(content) - 2))
        if data.draw(st.booleans()):
            victim.write_bytes(content[:cut])
        else:
            victim.unlink()
        assert complete(path) is None
        assert newest(folder) is None


def test_what_an_exception_broke_off_is_gone_and_the_earlier_one_is_there(tmp_path):
    save(tmp_path, 1)

    def broken_off() -> None:
        with writing(tmp_path, 2) as inside:
            (inside / "model.bin").write_bytes(b"half")
            raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        broken_off()
    assert [path.name for path in tmp_path.iterdir()] == ["step-000000001"]


def test_a_step_that_is_there_already_is_not_touched(tmp_path):
    save(tmp_path, 5)
    with writing(tmp_path, 5) as inside:
        (inside / "model.bin").write_bytes(b"another")
    assert _is_whole(newest(tmp_path).path, 5)
    assert [path.name for path in tmp_path.iterdir()] == ["step-000000005"]


def test_an_incomplete_one_of_the_same_name_gives_way(tmp_path):
    (tmp_path / "step-000000005").mkdir()
    (tmp_path / "step-000000005" / "model.bin").write_bytes(b"torn")
    save(tmp_path, 5)
    assert _is_whole(newest(tmp_path).path, 5)
    assert (tmp_path / "incomplete" / "step-000000005" / "model.bin").read_bytes() == b"torn"


def test_the_manifest_says_what_the_contract_says(tmp_path):
    save(tmp_path, 123, world=4)
    manifest = json.loads((tmp_path / "step-000000123" / "manifest.json").read_text())
    assert manifest.pop("at") > 0
    assert manifest == {
        "step": 123,
        "world": 4,
        "files": {"model.bin": len(_weights(123)), "optimizer/rank-0.bin": 2 * len(_weights(123))},
        "format": "files",
    }
    found = newest(tmp_path)
    assert (found.step, found.world, found.format) == (123, 4, "files")
    assert found.bytes == sum(p.stat().st_size for p in found.path.rglob("*") if p.is_file())


def test_a_manifest_that_points_elsewhere_is_not_believed(tmp_path):
    (tmp_path / "secret").write_bytes(b"123")
    for name in ("../secret", str(tmp_path / "secret"), "a\0b"):
        inside = begin(tmp_path, 9)
        (inside / "manifest.json").write_text(json.dumps({"step": 9, "files": {name: 3}}))
        inside.rename(tmp_path / "step-000000009")
        assert complete(tmp_path / "step-000000009") is None
        move_incomplete(tmp_path)


def test_what_is_being_copied_away_is_not_deleted(tmp_path):
    for step in (1, 2, 3):
        save(tmp_path, step)
    (tmp_path / "uploading").write_text("step-000000001\n")
    assert [found.step for found in prune(tmp_path, 1)] == [2]
    assert [found.step for found in listed(tmp_path)] == [1, 3]
    (tmp_path / "uploading").unlink()
    assert [found.step for found in prune(tmp_path, 1)] == [1]


def test_what_a_framework_wrote_is_not_deleted(tmp_path):
    _hugging_face(tmp_path / "checkpoint-10")
    save(tmp_path, 20)
    save(tmp_path, 30)
    assert [found.step for found in prune(tmp_path, 1)] == [20]
    assert [found.step for found in listed(tmp_path)] == [10, 30]


def test_at_least_one_is_kept(tmp_path):
    with pytest.raises(ValueError, match="at least one"):
        prune(tmp_path, 0)


def test_a_folder_that_is_not_there_has_none(tmp_path):
    assert newest(tmp_path / "none") is None
    assert move_incomplete(tmp_path / "none") == []


def test_nothing_but_cut_off_checkpoints_is_moved(tmp_path):
    save(tmp_path, 1)
    begin(tmp_path, 2)
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "plot-2.png").write_bytes(b"x")
    (tmp_path / "data-2024").mkdir()
    assert [path.name for path in move_incomplete(tmp_path)] == ["step-000000002.tmp"]
    assert {path.name for path in tmp_path.iterdir()} == {
        "step-000000001",
        "results",
        "data-2024",
        "incomplete",
    }


def test_cut_off_saves_do_not_pile_up(tmp_path):
    for step in (1, 2, 3):
        begin(tmp_path, step)
        move_incomplete(tmp_path)
    assert [path.name for path in (tmp_path / "incomplete").iterdir()] == ["step-000000003.tmp"]


def test_a_seal_is_the_last_thing_and_before_it_there_is_nothing(tmp_path):
    inside = begin(tmp_path, 4)
    (inside / "a").write_bytes(b"a")
    assert newest(tmp_path) is None
    assert seal(inside, 4, 2) == newest(tmp_path)


# What frameworks write


def _hugging_face(path: Path, *, ranks: int = 1) -> None:
    path.mkdir(parents=True)
    (path / "model.safetensors").write_bytes(b"weights")
    (path / "optimizer.pt").write_bytes(b"state")
    names = ["rng_state.pth"] if ranks == 1 else [f"rng_state_{i}.pth" for i in range(ranks)]
    for name in names:
        (path / name).write_bytes(b"rng")
    (path / "trainer_state.json").write_text('{"global_step": 10}')


def test_a_trainers_checkpoint_is_complete_with_its_state_and_the_ranks_shards(tmp_path):
    path = tmp_path / "checkpoint-10"
    _hugging_face(path, ranks=2)
    found = complete(path)
    assert (found.step, found.world, found.format) == (10, 2, "hf")


@pytest.mark.parametrize("gone", ["trainer_state.json", "rng_state_0.pth"])
def test_a_trainers_checkpoint_without_a_part_is_not(tmp_path, gone):
    path = tmp_path / "checkpoint-10"
    _hugging_face(path, ranks=2)
    (path / gone).unlink()
    assert complete(path) is None
    assert [moved.name for moved in move_incomplete(tmp_path)] == ["checkpoint-10"]


@pytest.mark.parametrize("cut", ["trainer_state.json", "model.safetensors", "rng_state_1.pth"])
def test_a_trainers_checkpoint_with_an_empty_part_is_not(tmp_path, cut):
    path = tmp_path / "checkpoint-10"
    _hugging_face(path, ranks=2)
    (path / cut).write_bytes(b"")
    assert complete(path) is None


def test_a_trainers_checkpoint_with_shards_needs_all_that_its_index_names(tmp_path):
    path = tmp_path / "checkpoint-10"
    _hugging_face(path)
    index = {"weight_map": {"a": "model.safetensors", "b": "model-2.safetensors"}}
    (path / "model.safetensors.index.json").write_text(json.dumps(index))
    assert complete(path) is None
    (path / "model-2.safetensors").write_bytes(b"weights")
    assert complete(path) is not None


def test_a_trainers_sharded_state_needs_its_metadata(tmp_path):
    path = tmp_path / "checkpoint-10"
    _hugging_face(path, ranks=2)
    _torch(path / "optimizer_0")
    assert complete(path) is not None
    (path / "optimizer_0" / ".metadata").unlink()
    assert complete(path) is None


def _torch(path: Path) -> None:
    path.mkdir(parents=True)
    for rank in (0, 1):
        (path / f"__{rank}_0.distcp").write_bytes(b"shard")
    (path / ".metadata").write_bytes(b"pickle")


def test_torchs_own_is_complete_with_its_metadata(tmp_path):
    _torch(tmp_path / "iteration_40")
    found = newest(tmp_path)
    assert (found.step, found.world, found.format) == (40, None, "dcp")
    (tmp_path / "iteration_40" / ".metadata").unlink()
    assert newest(tmp_path) is None
    assert len(move_incomplete(tmp_path)) == 1


def _deepspeed(folder: Path, step: int, *, ranks: int = 2, latest: bool = True) -> Path:
    path = folder / f"global_step{step}"
    path.mkdir(parents=True)
    (path / "mp_rank_00_model_states.pt").write_bytes(b"model")
    for rank in range(ranks):
        (path / f"bf16_zero_pp_rank_{rank}_mp_rank_00_optim_states.pt").write_bytes(b"state")
    if latest:
        (folder / "latest").write_text(path.name)
    return path


def test_deepspeeds_is_complete_when_latest_names_it_and_each_rank_wrote(tmp_path):
    _deepspeed(tmp_path, 10)
    _deepspeed(tmp_path, 20)
    assert [(c.step, c.world, c.format) for c in listed(tmp_path)] == [
        (10, 2, "deepspeed"),
        (20, 2, "deepspeed"),
    ]


def test_deepspeeds_that_latest_does_not_name_yet_is_not(tmp_path):
    _deepspeed(tmp_path, 10)
    _deepspeed(tmp_path, 20, latest=False)
    assert newest(tmp_path).step == 10
    assert [moved.name for moved in move_incomplete(tmp_path)] == ["global_step20"]


def test_with_an_emptied_latest_only_the_newest_is_in_doubt(tmp_path):
    _deepspeed(tmp_path, 10)
    _deepspeed(tmp_path, 20)
    (tmp_path / "latest").write_text("")
    assert newest(tmp_path).step == 10


def test_deepspeeds_with_a_ranks_state_gone_or_empty_is_not(tmp_path):
    path = _deepspeed(tmp_path, 10, ranks=3)
    part = path / "bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt"
    part.write_bytes(b"")
    assert newest(tmp_path) is None
    part.unlink()
    assert newest(tmp_path) is None


@pytest.mark.parametrize(
    ("write", "form"),
    [
        (lambda path: _torch(path / "model"), "dcp"),
        (lambda path: _deepspeed(path, 5), "deepspeed"),
        (lambda path: (path / "weights.pt").write_bytes(b"x"), "files"),
    ],
)
def test_our_manifest_names_what_wrote_the_files(tmp_path, write, form):
    with writing(tmp_path, 5, 2) as inside:
        write(inside)
    assert newest(tmp_path).format == form
