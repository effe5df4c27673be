"""A history file read and made into rows, in a process beside the one that stores them.

What goes between the two are plain tuples: marshal moves them several times as fast as pickle,
and both ends are the same interpreter.
"""

import gc
import json
import marshal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from operator import itemgetter
from typing import IO, Any, BinaryIO
from zoneinfo import ZoneInfo

from gateway.core import json_jobs
from gateway.core.sacct_fields import state_of
from gateway.core.sacct_frames import Dump, Held, Item, NoHeader, Step
from gateway.core.sacct_text import MissingColumns, SacctRow
from gateway.errors import GatewayError
from gateway.services.import_text import Text, opened
from gateway.services.ingest_new import WIDTH, most_gpus, prepare, values_of
from gateway.store.squeezed import NOTHING, Squeezed, squeeze_jobs, squeeze_runs
from gateway.wire import messages as m
from gateway.wire.sacct_rows import cluster_of, read_row

ROWS = 5000  # of a batch, and so of a transaction
TEXT, JSON = "sacct", "sacct-json"
_CUT = "the file ends in the middle of this record"
_OTHER_TASK = "another array task has this job id and this time of submission"
_TOO_LARGE = "a number that no cluster has"
_MOST = 2**31 - 1  # what every database keeps; in seconds 68 years
# Fields of a record: seconds, minutes, nodes, processors, requeues.
_COUNTS = itemgetter(12, 13, 15, 16, 22)
_MAY_BE_UNKNOWN = itemgetter(14, 20, 21, 27)


class BadHistory(GatewayError):
    """The file cannot be imported at all; nothing of it was stored. The message says why."""

    code = "bad_history"


class BrokenOff(GatewayError):
    """Reading ended before the file did; what was stored so far is whole and stays."""

    code = "import_broken_off"


@dataclass(frozen=True, slots=True)
class Source:
    """`kind`: TEXT or JSON. `cluster` None: as the file says, else `home`. `needs` are columns that
    the site's prices want beside those that any import needs."""

    path: str
    zone: str
    home: str
    cluster: str | None
    delimiter: str | None
    now: datetime
    needs: tuple[str, ...] = ()
    kind: str = TEXT


@dataclass(slots=True)
class Batch:
    """Rows of one cluster, in the order of their ids, and what could not be understood.

    `several` are ids with more than one row here. `total` is set at the end of the file only:
    how many records it had; and `cut`, why the file's own end is missing.
    """

    cluster: str
    jobs: Squeezed = NOTHING
    runs: Squeezed = NOTHING
    several: set[int] = field(default_factory=set)
    held: list[tuple[str, str]] = field(default_factory=list)
    steps: int = 0
    total: int | None = None
    cut: str | None = None


def rarely_collect() -> None:
    """Millions of tuples, none of them in a circle: looking for circles takes half the time."""
    gc.freeze()
    gc.set_threshold(200_000, 20, 100)


def feed(source: Source) -> Iterator[Batch]:
    """The batches, read by a process of its own; raises BadHistory or BrokenOff."""
    # -P: a folder named gateway where somebody stands is not ours.
    argv = [sys.executable, "-P", "-m", "gateway.services.import_feed", source.path, source.zone]
    argv += [source.home, source.cluster or "", source.delimiter or "", source.now.isoformat()]
    argv += [source.kind, *source.needs]
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
        cluster, jobs, runs, several, held, steps, total, cut = message[1:]
        yield Batch(cluster, Squeezed(*jobs), Squeezed(*runs), several, held, steps, total, cut)
        if total is not None:
            return
    raise BrokenOff("the file could not be read to its end")


def batches(source: Source) -> Iterator[Batch]:
    """The same in this process."""
    try:
        if source.kind == JSON:
            # Bytes that are no UTF-8 survive as lone surrogates until a field is read.
            with opened(source.path, errors="surrogateescape") as text:
                yield from _from_json(text, source)
        else:
            with opened(source.path, errors="backslashreplace") as text:
                yield from _from_text(text, source)
    except OSError as error:
        raise BadHistory(f"{source.path}: {error}") from error


def _from_text(text: Text, source: Source) -> Iterator[Batch]:
    try:
        dump = Dump(text.lines(), zone=ZoneInfo(source.zone), delimiter=source.delimiter)
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
    yield from _collected(dump, text, source)


def _collected(dump: Dump, text: Text, source: Source) -> Iterator[Batch]:
    gathering = _Gathering(source)
    item: Item | None = None
    for item in dump:
        if type(item) is SacctRow:
            gathering.row(item, dump.text)
        elif type(item) is Held:
            gathering.held.append((item.raw, item.reason))
        elif type(item) is Step:
            gathering.steps += 1
        if gathering.full:
            yield from gathering.take()
    cut, total = text.cut, dump.records
    if text.rest:
        gathering.held.append((text.rest, _CUT))
        total += 1
    elif text.unended and type(item) is Held:
        cut = "the last line has no end and is no whole record"
    yield from gathering.take()
    yield Batch(source.cluster or source.home, total=total, cut=cut)


def _from_json(text: Text, source: Source) -> Iterator[Batch]:
    gathering, total, cut = _Gathering(source), 0, None
    try:
        for row in json_jobs.jobs(text.stream):
            total += 1
            gathering.json_row(row)
            if gathering.full:
                yield from gathering.take()
    except json_jobs.NoJobs as error:
        raise BadHistory(f"this is not what `sacct --json` prints: {error}") from error
    except json_jobs.CutShort as error:
        cut = str(error)
        if error.rest.strip():
            total += 1
            gathering.held.append((error.rest.encode("utf-8", "replace").decode(), _CUT))
    except json_jobs.Incomplete as error:
        cut = f"Slurm did not give all: {error}"
    yield from gathering.take()
    yield Batch(source.cluster or source.home, total=total, cut=cut)


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

    def json_row(self, given: object) -> None:
        read, text = read_row(given, {}), json.dumps(given, ensure_ascii=True)
        if isinstance(read, m.HeldRow):
            self.held.append((read.raw, read.reason))
            return
        try:
            state_of(read.state)
            cluster = _printable(cluster_of(given))
        except (TypeError, ValueError) as error:
            self.held.append((text, str(error)))
            return
        row = SacctRow._make((*map(_printable, values_of(read)), cluster))
        if row.end_time and not row.elapsed_seconds and row.node_list is None:
            # As in sacct's text: no node and no second tell who never started.
            row = row._replace(start_time=None, alloc_tres="")
        self.row(row, text)

    def row(self, row: SacctRow, text: str) -> None:
        if _is_too_large(row):
            self.held.append((text, _TOO_LARGE))
            return
        cluster = self._source.cluster or row.cluster or self._source.home
        key = (cluster, row.job_id)
        if key in self._seen:
            before = self._seen[key]
            if before.submit_time == row.submit_time and before[26:28] != row[26:28]:
                self.held.append((text, _OTHER_TASK))
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


def _is_too_large(row: SacctRow) -> bool:
    """Some tools print counts beyond what any database keeps; one such row would stop them all."""
    known = (*_COUNTS(row), *(value or 0 for value in _MAY_BE_UNKNOWN(row)))
    return max(known) > _MOST or most_gpus(row.alloc_tres, row.req_tres) > _MOST


def _in_order(row: SacctRow) -> tuple[int, datetime, int]:
    return row.job_id, row.submit_time, row.restarts


def _printable(value: Any) -> Any:
    """No database takes a NUL in a text."""
    return value.replace("\0", "\ufffd") if isinstance(value, str) else value


def main(argv: list[str]) -> None:
    """The reading process: batches to standard output."""
    rarely_collect()
    path, zone, home, cluster, delimiter, now, kind, *needs = argv
    source = Source(
        path,
        zone,
        home,
        cluster or None,
        delimiter or None,
        datetime.fromisoformat(now),
        tuple(needs),
        kind,
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
    return batch.several, batch.held, batch.steps, batch.total, batch.cut


def _send(out: BinaryIO, message: Any) -> None:
    body = marshal.dumps(message)
    out.write(len(body).to_bytes(8))
    out.write(body)
    out.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
