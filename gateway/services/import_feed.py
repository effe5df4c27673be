"""A history file read and made into rows, in a process beside the one that stores them.

What goes between the two are plain tuples: marshal moves them several times as fast as pickle,
and both ends are the same interpreter.
"""

import gc
import gzip
import io
import marshal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import IO, Any, BinaryIO, TextIO, cast
from zoneinfo import ZoneInfo

from gateway.core.sacct_frames import Dump, Held, NoHeader, Step
from gateway.core.sacct_text import MissingColumns, SacctRow
from gateway.errors import GatewayError
from gateway.services.ingest_new import WIDTH, prepare
from gateway.store.squeezed import NOTHING, Squeezed, squeeze_jobs, squeeze_runs

STANDARD_INPUT = "-"
ROWS = 5000  # of a batch, and so of a transaction
_GZIP = b"\x1f\x8b"
_OTHER_TASK = "another array task has this job id and this time of submission"


class BadHistory(GatewayError):
    """The file cannot be imported at all; nothing of it was stored. The message says why."""

    code = "bad_history"


class BrokenOff(GatewayError):
    """Reading ended before the file did; what was stored so far is whole and stays."""

    code = "import_broken_off"


@dataclass(frozen=True, slots=True)
class Source:
    """`cluster` None: as the file says, else `home`. `needs` are columns that the site's prices
    want beside those that any import needs."""

    path: str
    zone: str
    home: str
    cluster: str | None
    delimiter: str | None
    now: datetime
    needs: tuple[str, ...] = ()


@dataclass(slots=True)
class Batch:
    """Rows of one cluster, in the order of their ids, and what could not be understood.

    `several` are ids with more than one row here. `total` is set at the end of the file only:
    how many records it had.
    """

    cluster: str
    jobs: Squeezed = NOTHING
    runs: Squeezed = NOTHING
    several: set[int] = field(default_factory=set)
    held: list[tuple[str, str]] = field(default_factory=list)
    steps: int = 0
    total: int | None = None


def rarely_collect() -> None:
    """Millions of tuples, none of them in a circle: looking for circles takes half the time."""
    gc.freeze()
    gc.set_threshold(200_000, 20, 100)


def feed(source: Source) -> Iterator[Batch]:
    """The batches, read by a process of its own; raises BadHistory or BrokenOff."""
    # -P: a folder named gateway where somebody stands is not ours.
    argv = [sys.executable, "-P", "-m", "gateway.services.import_feed", source.path, source.zone]
    argv += [source.home, source.cluster or "", source.delimiter or "", source.now.isoformat()]
    argv += source.needs
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as reader:  # noqa: S603  # ourselves
        assert reader.stdout is not None
        try:
            yield from _received(reader.stdout)
        finally:
            reader.kill()


def _received(pipe: IO[bytes]) -> Iterator[Batch]:
    while head := pipe.read(8):
        message = marshal.loads(pipe.read(int.from_bytes(head)))  # noqa: S302  # our own child's
        if message[0] == "bad":
            raise BadHistory(message[1])
        cluster, jobs, runs, several, held, steps, total = message[1:]
        yield Batch(cluster, Squeezed(*jobs), Squeezed(*runs), several, held, steps, total)
        if total is not None:
            return
    raise BrokenOff("the file could not be read to its end")


def batches(source: Source) -> Iterator[Batch]:
    """The same in this process."""
    with _opened(source.path) as lines:
        try:
            dump = Dump(lines, zone=ZoneInfo(source.zone), delimiter=source.delimiter)
        except NoHeader as error:
            raise BadHistory(
                f"the first line does not name columns: {str(error)[:80]!r}. Let sacct print it "
                "(no --noheader), and give --delimiter where it is a rare one"
            ) from error
        except MissingColumns as error:
            raise BadHistory(f"the file lacks columns: {error}") from error
        if lacking := [name for name in source.needs if not dump.has(name)]:
            raise BadHistory(
                f"the file lacks columns: {', '.join(lacking)}. Prices here depend on them"
            )
        yield from _collected(dump, source)


def _collected(dump: Dump, source: Source) -> Iterator[Batch]:
    gathering = _Gathering(source)
    for item in dump:
        if type(item) is SacctRow:
            gathering.row(item, dump)
        elif type(item) is Held:
            gathering.held.append((item.raw, item.reason))
        elif type(item) is Step:
            gathering.steps += 1
        if gathering.full:
            yield from gathering.take()
    yield from gathering.take()
    yield Batch(source.cluster or source.home, total=dump.records)


class _Gathering:
    """Rows until they are enough for a batch."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._empty()

    def _empty(self) -> None:
        self._rows: dict[str, list[SacctRow]] = {}
        self._seen: dict[tuple[str, int], SacctRow] = {}
        self._several: dict[str, set[int]] = {}
        self.held: list[tuple[str, str]] = []
        self.steps = 0

    @property
    def full(self) -> bool:
        return len(self._seen) + len(self.held) >= ROWS or self.steps >= 20 * ROWS

    def row(self, row: SacctRow, dump: Dump) -> None:
        cluster = self._source.cluster or row.cluster or self._source.home
        key = (cluster, row.job_id)
        if key in self._seen:
            before = self._seen[key]
            if before.submit_time == row.submit_time and before[26:28] != row[26:28]:
                self.held.append((dump.text, _OTHER_TASK))
                return
            self._several.setdefault(cluster, set()).add(row.job_id)
        self._seen[key] = row
        rows = self._rows.get(cluster)
        if rows is None:
            rows = self._rows[cluster] = []
        rows.append(row)

    def take(self) -> Iterator[Batch]:
        first = Batch(self._source.cluster or self._source.home, held=self.held, steps=self.steps)
        if self.held or self.steps:
            yield first
        for cluster, rows in self._rows.items():
            rows.sort(key=_in_order)
            prepared = prepare((row[:WIDTH] for row in rows), cluster=cluster, now=self._source.now)
            jobs, runs = squeeze_jobs(prepared.jobs), squeeze_runs(prepared.runs)
            yield Batch(cluster, jobs, runs, self._several.get(cluster, set()))
        self._empty()


def _in_order(row: SacctRow) -> tuple[int, datetime, int]:
    return row.job_id, row.submit_time, row.restarts


@contextmanager
def _opened(path: str) -> Iterator[Iterable[str]]:
    """The file's lines without their ends; compressed or not. A lone CR ends no line: it may be
    part of a job's name."""
    try:
        given = sys.stdin.fileno() if path == STANDARD_INPUT else path
        with open(given, "rb") as raw:  # noqa: PTH123  # a number is no path
            packed = raw.peek(2)[:2] == _GZIP
            whole = gzip.GzipFile(fileobj=raw) if packed else raw
            text = io.TextIOWrapper(
                cast(BinaryIO, whole), "utf-8", errors="backslashreplace", newline="\n"
            )
            yield _lines(text)
    except (OSError, EOFError) as error:
        raise BadHistory(f"{path}: {error}") from error


def _lines(text: TextIO) -> Iterator[str]:
    for line in text:
        # No database takes a NUL in a text.
        yield (line.replace("\0", "\ufffd") if "\0" in line else line).removesuffix("\n")


def main(argv: list[str]) -> None:
    """The reading process: batches to standard output."""
    rarely_collect()
    path, zone, home, cluster, delimiter, now, *needs = argv
    source = Source(
        path,
        zone,
        home,
        cluster or None,
        delimiter or None,
        datetime.fromisoformat(now),
        tuple(needs),
    )
    out = sys.stdout.buffer
    try:
        for batch in batches(source):
            _send(
                out, ("batch", batch.cluster, tuple(batch.jobs), tuple(batch.runs), *_rest(batch))
            )
    except BadHistory as error:
        _send(out, ("bad", str(error)))
    except BrokenPipeError:
        sys.stderr.close()  # whoever asked is gone


def _rest(batch: Batch) -> tuple[object, ...]:
    return batch.several, batch.held, batch.steps, batch.total


def _send(out: BinaryIO, message: Any) -> None:
    body = marshal.dumps(message)
    out.write(len(body).to_bytes(8))
    out.write(body)
    out.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
