"""The run folder: where its files are, and how they are written so that they are always true.

Whatever is killed, a file that is there is whole: lines go out in one `write` each, other files
are written aside, synced and renamed into place.
"""

from __future__ import annotations

import errno
import json
import math
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LINE_BYTES = 4000  # of a line with its end: small enough to go out in one piece
TEXT_SHORTENED = 200


@dataclass(frozen=True)
class RunFolder:
    """The paths of one run, and who writes there: `job` is the key that requeue takes."""

    path: Path
    checkpoints: Path
    job: str
    restart: int

    @classmethod
    def of_environment(cls, environment: Mapping[str, str] | None = None) -> RunFolder:
        """What SLUICE_* say; without them a folder of the present directory.

        Raises ValueError where a number is none.
        """
        given = os.environ if environment is None else environment
        path = Path(given.get("SLUICE_RUN_DIR") or "sluice-runs/local").absolute()
        return cls(
            path=path,
            checkpoints=Path(given.get("SLUICE_CHECKPOINT_DIR") or path / "checkpoints").absolute(),
            job=given.get("SLUICE_JOB", ""),
            restart=whole("SLUICE_RESTART", 0, given),
        )

    @property
    def stop(self) -> Path:
        """Present: save and end. Its text is the reason."""
        return self.path / "stop"

    @property
    def managed(self) -> Path:
        """Present: the script uses the library, so that only DONE means success."""
        return self.path / "managed"

    @property
    def done(self) -> Path:
        """Present: the training is over."""
        return self.path / "DONE"

    @property
    def stopped(self) -> Path:
        """Present: it saved and stopped because it was asked to."""
        return self.path / "STOPPED"

    @property
    def stalled(self) -> Path:
        """JSON of the stall that was acted on."""
        return self.path / "stalled"

    @property
    def owner(self) -> Path:
        """The key of the job that has this folder."""
        return self.path / "owner"

    @property
    def events(self) -> Path:
        """What happened, a line each."""
        return self.path / "events.jsonl"

    @property
    def metrics(self) -> Path:
        """Progress, a line each."""
        return self.path / "metrics.jsonl"

    @property
    def ranks(self) -> Path:
        """Folder: the output of each rank."""
        return self.path / "ranks"

    @property
    def stacks(self) -> Path:
        """Folder: stacks of a stalled run."""
        return self.path / "stacks"

    @property
    def uploading(self) -> Path:
        """Names the checkpoint that is being copied away, which nobody may delete."""
        return self.checkpoints / "uploading"

    def telemetry(self, node: str) -> Path:
        """The cards of a node, a line every few seconds."""
        return self.path / "telemetry" / f"{node}.jsonl"

    def line(self, path: Path, facts: Mapping[str, Any]) -> None:
        """Append `facts` to `path` with the time, the job and the restart. OSError: not written."""
        stamp = {"at": round(time.time(), 3), "job": self.job, "restart": self.restart}
        append(path, {**facts, **stamp})

    def event(self, kind: str, **facts: Any) -> None:
        """Append what happened to events.jsonl. OSError: not written."""
        self.line(self.events, {"kind": kind, **facts})


def whole(name: str, default: int, environment: Mapping[str, str] | None = None) -> int:
    """The whole number in a variable; `default` where it is unset or empty; ValueError else."""
    given = os.environ if environment is None else environment
    text = given.get(name, "").strip()
    if not text:
        return default
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{name} must be a whole number, not {text!r}") from None


def append(path: Path, facts: Mapping[str, Any]) -> None:
    """Append one JSON line with one `write`, folders made as needed. OSError: not written.

    What is not finite becomes null; where the line is longer than 4,000 bytes its texts are cut.
    ValueError: it is too long even then.
    """
    encoded = _encoded(facts)
    if len(encoded) > LINE_BYTES:
        encoded = _encoded({name: _shortened(value) for name, value in facts.items()})
    if len(encoded) > LINE_BYTES:
        raise ValueError(f"a line of {len(encoded)} bytes is longer than {LINE_BYTES}")
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        # A line that another broke off (a full disk, a kill) must not take this one with it.
        size = os.fstat(descriptor).st_size
        torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        line = b"\n" + encoded if torn else encoded
        if os.write(descriptor, line) != len(line):
            raise OSError(f"only a part of a line went into {path}")
    finally:
        os.close(descriptor)


def _encoded(facts: Mapping[str, Any]) -> bytes:
    try:
        text = json.dumps(facts, allow_nan=False, ensure_ascii=False)
    except ValueError:
        text = json.dumps(_finite(facts), allow_nan=False, ensure_ascii=False)
    # A file's name may hold bytes that are no text.
    return text.encode(errors="replace") + b"\n"


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(inner) for inner in value]
    return value


def _shortened(value: Any) -> Any:
    long = isinstance(value, str) and len(value) > TEXT_SHORTENED
    return value[: TEXT_SHORTENED - 1] + "…" if long else value


def lines(path: Path, *, last_bytes: int | None = None) -> Iterator[dict[str, Any]]:
    """The objects of a JSON-lines file, or of its last bytes; none where there is no such file.

    A torn or foreign line is passed over.
    """
    try:
        with path.open("rb") as stream:
            if last_bytes is not None:
                size = os.fstat(stream.fileno()).st_size
                stream.seek(max(0, size - last_bytes))
            content = stream.read()
    except FileNotFoundError:
        return
    for line in content.split(b"\n"):
        # RecursionError: a foreign line of thousands of brackets.
        with suppress(ValueError, RecursionError):
            found = json.loads(line)
            if isinstance(found, dict):
                yield found


def write_whole(path: Path, text: str) -> None:
    """Write `text` so that `path` holds either what it held or all of it, even after a crash."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{os.uname().nodename}.{os.getpid()}.tmp")
    try:
        with aside.open("w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        aside.replace(path)
    except BaseException:
        with suppress(OSError):
            aside.unlink()
        raise
    sync_folder(path.parent)


def read_object(path: Path) -> dict[str, Any] | None:
    """The JSON object that `path` holds; None where there is none or it is something else."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` last over a crash, where its file system can."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems do not sync folders; there a rename is safe by itself.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)
