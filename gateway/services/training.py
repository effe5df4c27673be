"""What training runs tell of themselves: their folders are read as their owners, into tables.

The files are people's own. Whatever stands in them ends up on the pages of their own jobs, and
never counts for money. A turn reads what is due until its time is used up; a thousand jobs take
more turns, not longer ones. It can be killed anywhere: a file's place moves in the transaction
that keeps what was read of it.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

from gateway.brokerclient.port import Broker
from gateway.core import results, runfolder
from gateway.core.hostlist import expand
from gateway.core.results import Reading
from gateway.core.training import lines, sums
from gateway.core.training.lines import Event, Measured, Whose
from gateway.errors import BrokerRefused, BrokerSilent, BrokerUnreachable
from gateway.store import training as store
from gateway.store.training import Again, Cursor, Followed, Told
from gateway.store.uow import Begin
from gateway.wire.messages import FileChunk

BUDGET_SECONDS = 1.5
MOST_JOBS = 300  # a turn; more could not be read in its time
MOST_NODES = 32  # of one job a turn
PIECE_BYTES, MOST_PIECES = 256 * 1024, 4  # of one file a turn
# Of an output file: further behind its end the lines between are given up, and it is said.
MOST_BEHIND_BYTES, CAUGHT_UP_BYTES = 32 * 2**20, 4 * 2**20
LINGER = timedelta(minutes=10)  # after its end: what a node's file system shows late
FIRST_SECONDS, SLOWEST_SECONDS = 10.0, 120.0
_CLOCKS_BEFORE, _CLOCKS_AFTER = timedelta(minutes=1), timedelta(minutes=5)
_LATE_RESTARTS = 5  # that the poll may not have seen yet
# No turn of ours makes these better soon.
_SLOW = frozenset({"file_timeout", "file_outside", "file_not_permitted", "file_not_regular"})


@dataclass(slots=True)
class TrainingReport:
    """`lines` were kept; `left` jobs were due, but the turn's time was used up."""

    taken_up: int = 0
    jobs: int = 0
    calls: int = 0
    lines: int = 0
    left: int = 0
    error_code: str | None = None


def follow(
    *,
    begin: Begin,
    read: Begin,
    broker: Broker,
    now: datetime,
    stopwatch: Callable[[], float] = time.monotonic,
    budget_seconds: float = BUDGET_SECONDS,
) -> TrainingReport:
    """One turn over the run folders that are due, those that wait longest first."""
    report = TrainingReport()
    ends = stopwatch() + budget_seconds
    report.taken_up = _take_up(begin, read, now)
    with read() as session:
        due = store.due(session, now=now, limit=MOST_JOBS)
        known = store.cursors(session, [job.job_id for job in due])
    again: list[Again] = []
    for job in due:
        if stopwatch() > ends:
            break
        reading = _Reading(job, known.get(job.job_id, {}), broker, now)
        try:
            reading.read()
        except (BrokerUnreachable, BrokerSilent) as error:
            report.error_code = error.code
            again.append(_again(reading, now, slow=True))  # it must not be the first one again
            break
        kept = _keep(reading, begin)
        again.append(_again(reading, now, heard=kept))
        report.jobs += 1
        report.lines += reading.lines + len(reading.printed) if kept else 0
        report.calls += reading.calls
    if again:
        with begin() as session:
            store.look_again(session, again, now=now)
    report.left = len(due) - len(again)
    return report


def _take_up(begin: Begin, read: Begin, now: datetime) -> int:
    with read() as session:
        fresh = store.unknown(session, ended_since=now - LINGER, limit=MOST_JOBS)
    if fresh:
        with begin() as session:
            store.take_up(session, fresh, now=now)
    return len(fresh)


def _keep(reading: "_Reading", begin: Begin) -> bool:
    if not reading.moved:
        return False
    told = reading.told()
    with begin() as session:
        return store.keep(session, told) and (reading.lines > 0 or bool(reading.printed))


def _again(reading: "_Reading", now: datetime, *, heard: bool = False, slow: bool = False) -> Again:
    """Soon where something is new, ever later where nothing is, never where all is told."""
    job = reading.job
    quiet = 0 if heard or reading.more else min(job.quiet + 1, 10)
    pause = min(SLOWEST_SECONDS, FIRST_SECONDS * 2 ** max(0, quiet - 1))
    # One that has ended has little left to tell, and must not hold up those that run.
    if slow or reading.slow or not (job.active or heard):
        pause = SLOWEST_SECONDS
    due: datetime | None = now if reading.more else now + timedelta(seconds=pause)
    over = not job.active and (job.end_time is None or now - job.end_time > LINGER)
    if over and not heard and not reading.more:
        due = None
    of_training = heard and reading.lines > 0
    return Again(job.job_id, due, quiet, job.turn + 1, of_training)


class _Line(Protocol):
    @property
    def at(self) -> float: ...


L = TypeVar("L", bound=_Line)


@dataclass(slots=True)
class _Reading:
    """One job's files in one turn."""

    job: Followed
    cursors: Mapping[str, Cursor]
    broker: Broker
    now: datetime
    events: list[Event] = field(default_factory=list)
    measured: list[Measured] = field(default_factory=list)
    printed: list[Reading] = field(default_factory=list)
    skipped: int = 0
    minutes: dict[str, dict[int, sums.Minute]] = field(default_factory=dict)
    moved: list[tuple[str, Cursor, Cursor]] = field(default_factory=list)
    calls: int = 0
    lines: int = 0
    more: bool = False
    slow: bool = False

    def read(self) -> None:
        """Raises BrokerUnreachable and BrokerSilent: then nobody's files can be read now."""
        job, key = self.job, self._key()
        run = runfolder.run_of(job.run, job_name=job.name, key=key, array_task=job.array_task)
        whole_array = job.array_job_id is not None and job.array_task is None
        if run is None or whole_array:
            return
        folder = runfolder.run_folder(job.working_directory, run)
        since, until = job.submit_time - _CLOCKS_BEFORE, self.now + _CLOCKS_AFTER
        restarts = job.restarts + _LATE_RESTARTS
        whose = Whose(key, since.timestamp(), until.timestamp(), restarts)
        self.events = self._lines(folder, runfolder.EVENTS, whose, lines.event)
        self.measured = self._lines(folder, runfolder.METRICS, whose, lines.measured)
        self._read_output()
        if {*self.cursors, *(file for file, _, _ in self.moved)} <= {runfolder.OUTPUT}:
            return  # no script of ours has begun there
        for file, node in self._telemetry():
            samples = self._lines(folder, file, whose, lines.sample)
            if samples:
                self.minutes[node] = sums.minutes(samples)

    def told(self) -> Told:
        metrics = [one.metric for one in self.measured if one.metric is not None]
        readings = [one.reading for one in self.measured if one.reading is not None]
        began = self.job.metrics_from
        if began is None and metrics:
            began = metrics[0].at
        return Told(
            job_id=self.job.job_id,
            moved=self.moved,
            events=self.events,
            points=sums.points(metrics, began or 0.0),
            minutes=self.minutes,
            metrics_from=began,
            readings=[*readings, *self.printed],
            skipped=self.skipped,
            at=self.now,
        )

    def _key(self) -> str:
        return runfolder.job_key(self.job.slurm_id, self.job.array_job_id, self.job.array_task)

    def _telemetry(self) -> Iterable[tuple[str, str]]:
        """The files of its nodes, and of those where an earlier run was; of very many, other ones
        each turn."""
        files = {runfolder.telemetry(node) for node in expand(self.job.node_list or "")}
        named = sorted({*filter(None, files), *filter(runfolder.node_of, self.cursors)})
        if len(named) > MOST_NODES:
            start = self.job.turn * MOST_NODES % len(named)
            named = (named + named)[start : start + MOST_NODES]
        return [(file, node) for file in named if (node := runfolder.node_of(file))]

    def _read_output(self) -> None:
        """The lines `::metric …` of the output file. They have no time: each gets one between
        the look before and this one, by its place in the file."""
        if self.job.output is None or self.slow:
            return
        was = now = self.cursors.get(runfolder.OUTPUT, Cursor())
        for _ in range(MOST_PIECES):
            chunk = self._chunk(self.job.output, now.offset)
            if chunk is None:
                break
            if chunk.size < now.offset:  # written anew by a restart
                now = replace(now, offset=0)
                continue
            if chunk.size - now.offset > MOST_BEHIND_BYTES:
                jump = chunk.size - CAUGHT_UP_BYTES
                self.skipped += jump - now.offset
                now = replace(now, offset=jump)
                continue
            now = self._take_printed(chunk, now)
            if now.offset < chunk.next_offset or chunk.next_offset >= chunk.size:
                break
        else:
            self.more = True
        if now != was:
            self.moved.append((runfolder.OUTPUT, was, now))

    def _take_printed(self, chunk: FileChunk, at: Cursor) -> Cursor:
        # Progress bars go back to the beginning of their line and never end it.
        text = chunk.text.replace("\r", "\n")
        texts, used = lines.split(text, size=chunk.next_offset - chunk.offset)
        ended = None if self.job.active else self.job.end_time
        until = min(ended or self.now, self.now).timestamp()
        begin = at.last_at or (self.job.start_time or self.job.submit_time).timestamp()
        rest = max(1, chunk.size - chunk.offset)
        for n, line in enumerate(texts, 1):
            found = results.printed(line)
            if found is not None:
                share = used * n / len(texts) / rest
                moment = begin + max(0.0, until - begin) * share
                self.printed.append(Reading(moment, self.job.restarts, *found))
        reached = begin + max(0.0, until - begin) * used / rest
        return replace(at, offset=at.offset + used, last_at=reached)

    def _lines(
        self, folder: str, file: str, whose: Whose, parse: Callable[[str, Whose], L | None]
    ) -> list[L]:
        """What is new in one file; nothing for one that is not there, or is not to be read."""
        was = now = self.cursors.get(file, Cursor())
        found: list[L] = []
        for _ in range(MOST_PIECES):
            if self.slow:
                break
            got = self._piece(f"{folder}/{file}", now)
            if got is None:
                break
            texts, now, more = got
            fresh = [line for text in texts if (line := parse(text, whose)) is not None]
            found += [one for one in fresh if now.floor_at is None or one.at > now.floor_at]
            if not more:
                break
        else:
            self.more = True
        if found:
            latest = max(one.at for one in found)
            now = replace(now, last_at=max(latest, now.last_at or latest))
        if now != was:
            self.moved.append((file, was, now))
        self.lines += len(found)
        return found

    def _piece(self, path: str, at: Cursor) -> tuple[list[str], Cursor, bool] | None:
        """Whole lines from the cursor on, where it is then, and whether there are more."""
        chunk = self._chunk(path, at.offset)
        if chunk is None:
            return None
        if chunk.size < at.offset:  # written anew: what was told before is known
            return [], Cursor(0, at.last_at, at.last_at), True
        texts, used = lines.split(chunk.text, size=chunk.next_offset - chunk.offset)
        moved = replace(at, offset=at.offset + used)
        return texts, moved, used > 0 and chunk.next_offset < chunk.size

    def _chunk(self, path: str, offset: int) -> FileChunk | None:
        self.calls += 1
        try:
            return self.broker.read_file(
                path, user=self.job.user, offset=offset, max_bytes=PIECE_BYTES
            )
        except BrokerRefused as error:
            self.slow = self.slow or error.code in _SLOW
            return None
