"""Save an overlay: a layer of what is new, and a document that names all layers.

It can be killed at any moment: what is there is whole, and the next save clears the rest away.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sluice_train.env import base as bases
from sluice_train.env import document, layer, scan, store
from sluice_train.env.document import FORMAT, Layer
from sluice_train.env.errors import BUSY, DATA, FULL, Changed, Spoiled, Unusable
from sluice_train.env.overlay import Overlay, State
from sluice_train.files import sync_folder

if TYPE_CHECKING:
    from sluice_train.env.scan import Entry

MOST_LAYERS = 8
DEAD = 3  # a third of what the layers hold is in no file any more: they are made one
TRIES = 3
LONGEST_NOTE = 500
_PAUSE = 1.0  # seconds, until what is being written has settled


@dataclass(frozen=True)
class Saved:
    """`new_bytes` were written for it; 0: the same was saved before."""

    id: str
    bytes: int
    new_bytes: int
    layers: int
    seconds: float


def save(
    overlay: Overlay, kept: store.Store, *, note: str = "", wait: bool = True, job: str = ""
) -> Saved:
    """Save what is in `overlay` now. Unusable says why not; nothing of it is left then."""
    began = time.monotonic()
    with kept.locked(wait=wait):
        kept.sweep()
        state = overlay.read()
        _bring_layers(state, kept)
        for attempt in range(1, TRIES + 1):
            try:
                state, new_bytes = _saved_layers(overlay, state, kept)
                break
            except Changed as busy:
                if attempt == TRIES:
                    raise Unusable(busy.last_word, BUSY) from busy
                time.sleep(_PAUSE)
        if new_bytes is None and state.parent is not None:
            total = sum(one.bytes for one in state.layers)
            return Saved(state.parent, total, 0, len(state.layers), time.monotonic() - began)
        name = kept.keep(_fields(overlay, state, note=note, job=job))
        kept.sweep()
        overlay.write(replace(state, parent=name, origin=str(kept.layers)))
    total = sum(one.bytes for one in state.layers)
    return Saved(name, total, new_bytes or 0, len(state.layers), time.monotonic() - began)


def _bring_layers(state: State, kept: store.Store) -> None:
    """Those of a snapshot that another person shared: theirs may be gone tomorrow."""
    for one in state.layers:
        target = kept.layer(one.sha256)
        if target.exists():
            continue
        aside = target.with_name(f"{store.TEMPORARY}{target.name}")
        try:
            shutil.copyfile(Path(state.origin, target.name), aside)
        except OSError as error:
            store.remove(aside)
            raise Unusable(f"{target.name} cannot be copied: {error.strerror}", FULL) from error
        _take_in(aside, kept, expected=one.sha256)


def _saved_layers(overlay: Overlay, state: State, kept: store.Store) -> tuple[State, int | None]:
    """The state with the layers of what is there now; None where nothing is new."""
    env = os.fsencode(overlay.env)
    now = _listing(env, state)
    fresh, lost = scan.changed(now, state.entries), scan.gone(now, state.entries)
    live = sum(entry.size for entry in now.values() if entry.kind == "f")
    if not now:
        raise Unusable("nothing is installed above the base yet", DATA)
    if not fresh and not lost:
        return state, None
    held = sum(one.content for one in state.layers)
    added = sum(now[path].size for path in fresh if now[path].kind == "f")
    dead = held + added - live
    whole = len(state.layers) >= MOST_LAYERS or dead * DEAD > held + added
    under = () if whole else state.layers
    if not under:
        fresh, lost = set(now), []
    wanted = _with_folders(fresh, now)
    aside = kept.layers / f"{store.TEMPORARY}{os.getpid()}"
    try:
        written = layer.write(aside, env, now, wanted, b"\0".join(lost))
        entries = _known(now, state.entries, written)
        if not whole and not _differs(fresh, entries, state.entries) and not lost:
            return replace(state, entries=entries), None
        later = scan.is_steady(now, _listing(env, state))
        if later is not None:
            raise Changed(os.fsdecode(later))
        one = Layer(*_take_in(aside, kept), written.size, written.count)
    finally:
        store.remove(aside)
    layers = (*under, one)
    if [each.sha256 for each in layers] == [each.sha256 for each in state.layers]:
        return replace(state, entries=entries), None
    is_new = one.sha256 not in {each.sha256 for each in state.layers}
    return replace(state, layers=layers, entries=entries), one.bytes if is_new else 0


def _listing(env: bytes, state: State) -> dict[bytes, Entry]:
    """What is there, but for what was made with the overlay and is as it was made."""
    now = scan.scan(env)
    for path, made in state.made.items():
        if path in now and now[path].looks_like(made):
            del now[path]
    for path in [*now]:  # folders that were made and hold something: their parents are needed
        while (path := os.path.dirname(path)) and path not in now and path in state.made:
            now[path] = state.made[path]
    return now


def _with_folders(fresh: set[bytes], now: dict[bytes, Entry]) -> set[bytes]:
    """With the folders above, for their modes."""
    wanted = set(fresh)
    for path in fresh:
        while path := os.path.dirname(path):
            wanted.add(path)
    return {path for path in wanted if path in now}


def _known(
    now: dict[bytes, Entry], before: dict[bytes, Entry], written: layer.Written
) -> dict[bytes, Entry]:
    """What is in the layers from now on, with the hashes that are known."""
    known = {}
    for path, entry in now.items():
        if path in written.left_out:
            continue
        sha256 = written.hashes.get(path) or (before[path].content if path in before else None)
        known[path] = replace(entry, content=sha256) if entry.kind == "f" else entry
    return known


def _differs(fresh: set[bytes], entries: dict[bytes, Entry], before: dict[bytes, Entry]) -> bool:
    """Whether anything that looks new is: a file may have been written anew with the same bytes."""
    for path in fresh & entries.keys():
        old, new = before.get(path), entries[path]
        if old is None or (old.kind, old.mode, old.content) != (new.kind, new.mode, new.content):
            return True
    return False


def _take_in(aside: Path, kept: store.Store, *, expected: str = "") -> tuple[str, int]:
    """Sync the image, read it back, and give it its name. Its SHA-256 and size."""
    try:
        with aside.open("rb") as file:
            os.fsync(file.fileno())
        sha256, size = layer.sha256(aside), aside.stat().st_size
        if expected and sha256 != expected:
            raise Unusable(f"the layer {expected} is damaged: its content has another hash", DATA)
        _require_readable(aside)
        aside.chmod(0o644)
        target = kept.layer(sha256)
        if not target.exists() or layer.sha256(target) != sha256:
            aside.replace(target)
            sync_folder(kept.layers)
    except OSError as error:
        raise Unusable(f"the snapshot cannot be written: {error.strerror}", FULL) from error
    return sha256, size


def _require_readable(image: Path) -> None:
    """All of it, as whoever restores it will read it. Raises Spoiled."""
    words = [layer.tool("unsquashfs"), "-strict-errors", "-quiet", "-no-progress"]
    words += ["-pseudo-file", os.devnull, str(image)]
    done = subprocess.run(words, capture_output=True, check=False)  # noqa: S603
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise Spoiled(said[-1] if said else f"unsquashfs ended with {done.returncode}")


def _fields(overlay: Overlay, state: State, *, note: str, job: str) -> dict[str, object]:
    sites = sorted((overlay.env / "lib").glob("python*/site-packages"))
    below = bases.look(Path(state.base["path"]), name=state.base["name"], kind=state.base["kind"])
    records = bases.record_hashes((*sites, *below.sites))
    conda = sorted(path.stem for path in below.path.glob("conda-meta/*.json"))
    return {
        "format": FORMAT,
        "user": store.user(),
        "at": int(time.time()),
        "job": job,
        "note": note,
        "parent": state.parent,
        "base": state.base,
        "layers": document.layer_fields(state.layers),
        "added": bases.packages(sites),
        "lock": {
            "pip": sorted(records.values(), key=str.casefold),
            "conda": conda,
            "records": hashlib.sha256("\n".join(sorted(records)).encode()).hexdigest(),
        },
    }


def main(argv: list[str]) -> int:
    """Save the overlay of this job, or the one that is named."""
    parser = argparse.ArgumentParser(prog="sluice_train.env save")
    parser.add_argument("--overlay", type=Path, help="its folder; else SLUICE_OVERLAY's")
    parser.add_argument("note", nargs="*", help="words for later")
    parser.add_argument("--no-wait", action="store_true", help="end with 75 while another one runs")
    parser.add_argument("--json", action="store_true", dest="as_json")
    given = parser.parse_args(argv[1:])
    folder = given.overlay or _of_environment()
    note = "".join(c for c in " ".join(given.note) if c.isprintable())[:LONGEST_NOTE]
    _be_nice()
    saved = save(
        Overlay(folder.absolute()),
        store.Store.of_environment(os.environ),
        note=note,
        wait=not given.no_wait,
        job=os.environ.get("SLUICE_JOB", ""),
    )
    if given.as_json:
        print(json.dumps(saved.__dict__))
    else:
        size = f"{saved.new_bytes / 1e6:,.1f} MB new, {saved.bytes / 1e6:,.1f} MB in all"
        print(f"saved as snapshot {saved.id[:12]}: {size}, {saved.seconds:.1f} s")
    return 0


def _of_environment() -> Path:
    if os.environ.get("SLUICE_OVERLAY"):
        return Path(os.environ["SLUICE_OVERLAY"]).parent
    raise Unusable("this job has no overlay: what is installed in it cannot be saved")


def _be_nice() -> None:
    """The person's own programs go first, at the processor and at the disk."""
    with suppress(OSError):
        os.nice(10)
    with suppress(OSError):
        subprocess.run(  # noqa: S603
            ["ionice", "-c3", "-p", str(os.getpid())],  # noqa: S607
            check=False,
            stdout=sys.stderr,
        )
