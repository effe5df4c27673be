"""What makes a folder a complete checkpoint, in each of the forms that are recognised.

Sources: torch 2.13 `distributed/checkpoint/filesystem.py` (`.metadata` is renamed into place last),
transformers 5.24 `trainer.py` (`trainer_state.json` is written after the shards of its rank),
deepspeed 0.19 `runtime/engine.py` (`latest` is written after a barrier).
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from sluice_train.files import read_object

MANIFEST = "manifest.json"
OWN = re.compile(r"step-(\d{9,})")
OWN_UNFINISHED = re.compile(r"step-\d{9,}(\.\w+)*\.tmp")
_HF = re.compile(r"checkpoint-(\d+)")
_HF_UNFINISHED = re.compile(r"tmp-checkpoint-\d+")
_DEEPSPEED = re.compile(r"global_step(\d+)")
_NUMBER = re.compile(r"(\d+)\D*$")
_RNG_STATE = re.compile(r"rng_state(?:_(\d+))?\.pth")
_SHARD = re.compile(r"__(\d+)_\d+\.distcp")
_OPTIMIZER_PART = re.compile(r"(?:bf16_)?zero_pp_rank_(\d+)_mp_rank_(\d+)_optim_states\.pt")


@dataclass(frozen=True)
class Checkpoint:
    """One complete checkpoint. `world` is how many ranks wrote it, None where it does not tell.

    `format` is `files`, `dcp`, `hf` or `deepspeed`; `at` is seconds since 1970 when it was
    finished; `bytes` is the size of all its files.
    """

    path: Path
    step: int
    world: int | None
    format: str
    at: float
    bytes: int


def complete(path: Path) -> Checkpoint | None:
    """The checkpoint in the folder `path`; None where there is none or a part is missing."""
    with suppress(OSError):
        # A folder can go while it is looked at: another prunes it.
        if not path.is_dir():
            return None
        if OWN.fullmatch(path.name):
            return _own(path)
        if _HF.fullmatch(path.name):
            return _own(path) if (path / MANIFEST).exists() else _hf(path)
        if _DEEPSPEED.fullmatch(path.name):
            return _deepspeed(path, _bound(path.parent))
        return _dcp(path)
    return None


def looks_unfinished(path: Path) -> bool:
    """Whether the folder bears the signs of a checkpoint whose writing was cut off.

    Nothing else in a folder of the person's own is a concern of ours.
    """
    if not path.is_dir() or path.is_symlink():
        return False
    unfinished = OWN_UNFINISHED.fullmatch(path.name) or _HF_UNFINISHED.fullmatch(path.name)
    named = OWN.fullmatch(path.name) or _HF.fullmatch(path.name) or _DEEPSPEED.fullmatch(path.name)
    if unfinished or named:
        return complete(path) is None
    return any(path.glob("*.distcp")) and complete(path) is None


def form_of(folder: Path) -> str:
    """What wrote the files in `folder`, whole or not: `dcp`, `hf`, `deepspeed`, or `files`."""
    if any(folder.rglob("*_optim_states.pt")):
        return "deepspeed"
    if (folder / "trainer_state.json").exists():
        return "hf"
    return "dcp" if any(folder.rglob(".metadata")) else "files"


def _own(path: Path) -> Checkpoint | None:
    manifest = read_object(path / MANIFEST)
    if manifest is None:
        return None
    step, world, sizes = manifest.get("step"), manifest.get("world"), manifest.get("files")
    if not isinstance(step, int) or not isinstance(sizes, dict) or step != _number(path):
        return None
    if not all(_has_size(path, name, size) for name, size in sizes.items()):
        return None
    return Checkpoint(
        path=path,
        step=step,
        world=world if isinstance(world, int) else None,
        format=str(manifest.get("format", "files")),
        at=_seconds(manifest.get("at"), path / MANIFEST),
        bytes=sum(sizes.values()) + (path / MANIFEST).stat().st_size,
    )


def _has_size(folder: Path, name: str, size: Any) -> bool:
    inside = PurePosixPath(name)
    if inside.is_absolute() or ".." in inside.parts or not isinstance(size, int):
        return False
    with suppress(OSError, ValueError):
        return (folder / name).stat().st_size == size
    return False


def _hf(path: Path) -> Checkpoint | None:
    """Complete as far as the files tell: how many ranks there were is written nowhere."""
    state = path / "trainer_state.json"
    if read_object(state) is None or (path / "checkpoint-is-incomplete.txt").exists():
        return None
    ranks = [_RNG_STATE.fullmatch(name) for name in _names(path)]
    numbers = sorted(int(found[1] or 0) for found in ranks if found)
    if not numbers or numbers != list(range(len(numbers))):
        return None
    inner = [folder for folder in path.iterdir() if folder.is_dir()]
    for folder in inner:
        if any(folder.glob("*.distcp")) and _dcp(folder) is None:
            return None
        if _DEEPSPEED.fullmatch(folder.name) and _deepspeed(folder, _bound(path)) is None:
            return None
    return _found(path, "hf", world=len(numbers), sign=state) if _all_weights(path) else None


def _all_weights(path: Path) -> bool:
    """Whether the parts that an index of sharded weights names are there, and no file is empty."""
    for index in path.glob("*.index.json"):
        named = read_object(index)
        parts = named.get("weight_map") if named else None
        if not isinstance(parts, dict):
            return False
        if not all((path / str(part)).is_file() for part in set(parts.values())):
            return False
    return _none_empty(path.glob("*.safetensors"), path.glob("*.bin"), path.glob("*.pt*"))


def _deepspeed(path: Path, bound: int) -> Checkpoint | None:
    step = _number(path)
    parts = [_OPTIMIZER_PART.fullmatch(name) for name in _names(path)]
    places = {(int(part[1]), int(part[2])) for part in parts if part}
    if step is None or step > bound or not places:
        return None
    data, model = 1 + max(place[0] for place in places), 1 + max(place[1] for place in places)
    if len(places) != data * model or not _none_empty(path.glob("*.pt")):
        return None
    sign = max(path.glob("*_optim_states.pt"), key=lambda part: part.stat().st_mtime)
    return _found(path, "deepspeed", world=data * model, sign=sign)


def _bound(folder: Path) -> int:
    """The last step that DeepSpeed calls saved, by `latest`: what is newer was cut off.

    `latest` is opened with truncation, so that a crash can empty it. Then the newest is in doubt
    and those before it are not: each had its barrier before the next began.
    """
    with suppress(OSError, UnicodeDecodeError):
        named = _DEEPSPEED.fullmatch((folder / "latest").read_text().strip())
        if named:
            return int(named[1])
    tags = [_DEEPSPEED.fullmatch(inner.name) for inner in folder.iterdir()]
    return max((int(tag[1]) for tag in tags if tag), default=0) - 1


def _dcp(path: Path) -> Checkpoint | None:
    metadata = path / ".metadata"
    if _number(path) is None or path.name.endswith(".tmp") or not _none_empty([metadata]):
        return None
    # A rank that has nothing to write leaves no file, so the highest one only is a lower bound.
    shards = [_SHARD.fullmatch(name) for name in _names(path)]
    if not any(shards) or not _none_empty(path.glob("*.distcp")):
        return None
    return _found(path, "dcp", world=None, sign=metadata)


def _found(path: Path, form: str, *, world: int | None, sign: Path) -> Checkpoint:
    sizes = (part.stat().st_size for part in path.rglob("*") if part.is_file())
    return Checkpoint(path, _number(path) or 0, world, form, sign.stat().st_mtime, sum(sizes))


def _none_empty(*groups: Any) -> bool:
    """Whether all the files are there with something in them: a crash can leave names alone."""
    return all(part.is_file() and part.stat().st_size > 0 for group in groups for part in group)


def _names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def _number(path: Path) -> int | None:
    found = _NUMBER.search(path.name)
    return int(found[1]) if found else None


def _seconds(given: Any, sign: Path) -> float:
    return float(given) if isinstance(given, (int, float)) else sign.stat().st_mtime
