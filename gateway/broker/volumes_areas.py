"""The areas that a site has for volumes, and what each of its providers must be able to do."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from gateway.broker.commands import Commands, Output
from gateway.core.volumes import NAME
from gateway.errors import BadConfiguration, BrokerUnreachable, GatewayError

_KEYS = {"name": str, "path": str, "provider": str, "mount": str, "first_project": int}
_FIRST_PROJECT = 100_000
_TOOLS_ARE_IN = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_NO_ROOM = re.compile("no space left|disk quota exceeded|read-only file system", re.IGNORECASE)


class Trouble(GatewayError):
    """Something of an area or a volume cannot be read or done; `code` says what."""


@dataclass(frozen=True, slots=True)
class AreaSettings:
    """`mount`: where the file system is mounted, the area itself or above it; an area that must
    be mounted and is not is gone, not empty."""

    name: str
    path: Path
    provider: str
    mount: Path
    first_project: int = _FIRST_PROJECT


@dataclass(frozen=True, slots=True)
class Figures:
    """In bytes. `used` None: not known, for `problem`; `limit` None without a problem: none."""

    used: int | None
    limit: int | None
    problem: str | None = None


class Provider(Protocol):
    """A kind of file system. Folders come with an area that the caller has looked at; what cannot
    be done raises Trouble."""

    @property
    def limits(self) -> bool:
        """Whether it can set any."""
        ...

    def read(self, area: AreaSettings, names: Sequence[str]) -> Mapping[str, Figures]:
        """Of each of these folders."""
        ...

    def make(self, area: AreaSettings, folder: Path, /) -> None:
        """An empty folder that a limit can be put on."""
        ...

    def limit(self, area: AreaSettings, folder: Path, limit_bytes: int | None, /) -> None: ...


@dataclass(frozen=True, slots=True)
class Tools:
    """The file systems' own programs."""

    commands: Commands

    def run(self, argv: Sequence[str], *, acts: bool = False) -> Output:
        """Trouble: volume_tool_missing, volume_timeout, and for what it says no to
        volume_area_full or volume_tool_failed."""
        try:
            done = self.commands.run(argv, environment={"PATH": _TOOLS_ARE_IN}, acts=acts)
        except BrokerUnreachable as error:
            missing = isinstance(error.__cause__, FileNotFoundError)
            code = "volume_tool_missing" if missing else "volume_timeout"
            raise Trouble(str(error), code=code) from error
        if done.status != 0:
            raise trouble(argv, done)
        return done


def trouble(argv: Sequence[str], done: Output) -> Trouble:
    said = " ".join(f"{done.stdout.decode('utf-8', 'replace')} {done.stderr}".split())[:500]
    code = "volume_area_full" if _NO_ROOM.search(said) else "volume_tool_failed"
    return Trouble(f"{argv[0]} {argv[1]}: {said}", code=code)


def load(path: Path | None, providers: Sequence[str]) -> tuple[AreaSettings, ...]:
    """The file's areas; none without a file. BadConfiguration lists all that is wrong."""
    if path is None:
        return ()
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadConfiguration(f"{path}: {error}") from error
    rows = found.get("area", [])
    problems = [f"unknown word {word}" for word in found.keys() - {"area"}]
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise BadConfiguration(f"{path}: areas are written [[area]]")
    for row in rows:
        problems += _problems(row, providers)
    names = [row.get("name") for row in rows]
    problems += [f"two areas {name}" for name in sorted({n for n in names if names.count(n) > 1})]
    if problems:
        raise BadConfiguration("; ".join(f"{path}: {one}" for one in problems))
    return tuple(_area(row) for row in rows)


def _problems(row: Mapping[str, Any], providers: Sequence[str]) -> list[str]:
    name = row.get("name")
    problems = [f"area {name}: unknown word {word}" for word in row.keys() - _KEYS.keys()]
    for key, kind in _KEYS.items():
        if key in row and type(row[key]) is not kind:
            problems.append(f"area {name}: {key} is no {kind.__name__}")
    if problems:
        return problems
    if not NAME.fullmatch(str(name)):
        problems.append(f"area {name}: its name is a letter, then a-z, 0-9, _ and -")
    if row.get("provider") not in providers:
        problems.append(f"area {name}: provider is none of {', '.join(providers)}")
    for key in ("path", "mount"):
        text = row.get(key, "/" if key == "mount" else "")
        if not text.startswith("/") or "//" in text or {".", ".."} & set(text.split("/")):
            problems.append(f"area {name}: {key} is no plain absolute path")
    if not 0 < row.get("first_project", 1) < 2**31:
        problems.append(f"area {name}: first_project is a project's number")
    if not problems and not Path(row["path"]).is_relative_to(row.get("mount", row["path"])):
        problems.append(f"area {name}: its path is not below its mount")
    return problems


def _area(row: Mapping[str, Any]) -> AreaSettings:
    path = Path(row["path"])
    # A plain folder may lie anywhere; quotas belong to a file system that is mounted.
    mount = Path(row.get("mount", "/" if row["provider"] == "folder" else row["path"]))
    first = row.get("first_project", _FIRST_PROJECT)
    return AreaSettings(row["name"], path, row["provider"], mount, first)
