"""An overlay: a virtual environment above a base, whose packages it sees and does not change.

`env/` is the environment, and holds what `save` saves but for what was made here: the Python, the
scripts of the base that run on it, and the line that adds the base's packages behind its own.
`state.json` says what is saved already.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluice_train.env import content, scan, store
from sluice_train.env.document import Layer, layer_fields
from sluice_train.env.errors import FULL, Unusable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sluice_train.env.base import Base
    from sluice_train.env.scan import Entry

STATE = "state.json"
_ADDS = "_sluice_below.pth"
_SECONDS = 120
# Their own Python or their own place: the overlay has its own.
_OWN = ("python", "pip", "activate", "Activate", "easy_install", "wheel", "conda")
# Where Jupyter looks below the prefix: JupyterLab in the base has to find its own files.
_DATA = ("share/jupyter", "etc/jupyter")


@dataclass
class State:
    """`entries` are those of the layers, as they were seen last; `made` what `make` made."""

    base: dict[str, str]
    parent: str | None = None
    origin: str = ""  # the folder of the parent's layers
    layers: tuple[Layer, ...] = ()
    entries: dict[bytes, Entry] = field(default_factory=dict)
    made: dict[bytes, Entry] = field(default_factory=dict)


@dataclass(frozen=True)
class Overlay:
    """`folder` holds `env` and the state."""

    folder: Path

    @property
    def env(self) -> Path:
        """The virtual environment."""
        return self.folder / "env"

    def read(self) -> State:
        """What is saved of it already. Unusable: it is no overlay."""
        try:
            raw: dict[str, Any] = json.loads((self.folder / STATE).read_bytes())
        except (OSError, ValueError) as error:
            raise Unusable(f"{self.folder} is no overlay: {error}") from error
        return State(
            base=raw["base"],
            parent=raw["parent"],
            origin=raw["origin"],
            layers=tuple(Layer(**one) for one in raw["layers"]),
            entries=scan.of_json(raw["entries"]),
            made=scan.of_json(raw["made"]),
        )

    def write(self, state: State) -> None:
        """Whole, or as it was."""
        raw = {
            "base": state.base,
            "parent": state.parent,
            "origin": state.origin,
            "layers": layer_fields(state.layers),
            "entries": scan.to_json(state.entries),
            "made": scan.to_json(state.made),
        }
        store.write_synced(self.folder / STATE, json.dumps(raw).encode(), 0o600)


def make(env: Path, base: Base, *, below: Iterable[Path] = ()) -> dict[bytes, Entry]:
    """Make the environment `env` above `below` (trees of layers) and `base`; where `env` holds
    files they stay. What was made, as it looks. Unusable: it cannot be written."""
    before = scan.scan(os.fsencode(env)) if env.is_dir() else {}
    trees = [*below]
    try:
        _venv(env, base)
        sites = env / "lib" / f"python{base.version}" / "site-packages"
        behind = [tree / "lib" / f"python{base.version}" / "site-packages" for tree in trees]
        lines = [f"site.addsitedir({str(place)!r})" for place in (*behind, *base.sites)]
        (sites / _ADDS).write_text(f"import site; {'; '.join(lines)}\n", "utf-8")
        for tree, python in (*((t, None) for t in trees), (base.path, base.path / "bin")):
            _scripts(env, tree, python)
            _data(env, tree)
        _commands(env)
    except OSError as error:
        raise Unusable(f"{env} cannot be written: {error.strerror}", FULL) from error
    now = scan.scan(os.fsencode(env))
    return {path: now[path] for path in scan.changed(now, before)}


def _venv(env: Path, base: Base) -> None:
    words = [str(base.python), "-I", "-m", "venv", "--without-pip", "--symlinks", str(env)]
    environment = {key: os.environ[key] for key in ("PATH", "LD_LIBRARY_PATH") if key in os.environ}
    try:
        subprocess.run(  # noqa: S603
            words,
            check=True,
            capture_output=True,
            timeout=_SECONDS,
            stdin=subprocess.DEVNULL,
            env=environment,
        )
    except subprocess.SubprocessError as error:
        said = (getattr(error, "stderr", b"") or b"").decode("utf-8", "replace").strip()
        raise Unusable(f"{env} cannot be made above {base.path}: {said or error}", FULL) from error


def _scripts(env: Path, tree: Path, python: Path | None) -> None:
    """Programs of a tree below, so that those in Python run on the overlay's and see what it has.

    `python` is the folder of the Python that scripts name; None: they name none."""
    folder = tree / "bin"
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        target = env / "bin" / path.name
        if path.name.startswith(_OWN) or os.path.lexists(target) or not path.is_file():
            continue
        with path.open("rb") as file:
            head = file.read(2048)
        if python is None and not head.startswith(content.PYTHON_LINE):
            target.symlink_to(path)
            continue
        found = content.script_python(head)
        is_own = found is not None and os.path.dirname(found[0]) == os.fsencode(python or "")
        if python is None or is_own:
            _program(target, env / "bin" / "python", path)


def _program(target: Path, *words: object) -> None:
    line = " ".join(shlex.quote(str(word)) for word in words)
    target.write_text(f'#!/bin/sh\nexec {line} "$@"\n', "utf-8")
    target.chmod(0o755)


def _data(env: Path, tree: Path) -> None:
    """Folders two steps down are linked whole: Jupyter refuses a file whose link leads out of the
    folder that it serves. What is above them stays open for what pip adds beside them."""
    for name in _DATA:
        top = tree / name
        for folder, folders, files in os.walk(top):
            here = env / Path(folder).relative_to(tree)
            here.mkdir(parents=True, exist_ok=True)
            scopes = [one for one in folders if one.startswith("@")]
            linked = [] if Path(folder) == top else [one for one in folders if one not in scopes]
            for one in (*files, *linked):
                if not os.path.lexists(here / one):
                    (here / one).symlink_to(Path(folder, one))
            folders[:] = scopes if Path(folder) != top else folders


def _commands(env: Path) -> None:
    """pip, which is the base's own and installs here, and a word to save by."""
    for name in ("pip", "pip3"):
        if not os.path.lexists(env / "bin" / name):
            _program(env / "bin" / name, env / "bin" / "python", "-m", "pip")
    kit, python = os.environ.get("SLUICE_KIT"), os.environ.get("SLUICE_PYTHON", "python3")
    if kit:
        words = ["env", f"PYTHONPATH={kit}", python, "-m", "sluice_train.env", "save"]
        _program(env / "bin" / "sluice-save", *words, "--overlay", env.parent)
