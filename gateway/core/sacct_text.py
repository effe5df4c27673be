"""What one record of `sacct -P` says. Where records begin and end is told by sacct_frames.

A cluster's dump repeats itself: times, states and resources are read once for each text.
"""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, tzinfo
from typing import NamedTuple

from gateway.core import sacct_fields as fields_of
from gateway.core.sacct_fields import MOST_REMEMBERED, Remembered, Unreadable

# What a charge and a wait cannot do without, and what may stand in for it.
NEEDED: tuple[tuple[str, ...], ...] = (
    ("JobID", "JobIDRaw"),
    ("User",),
    ("Account",),
    ("Partition",),
    ("State",),
    ("Submit",),
    ("Start",),
    ("End",),
    ("AllocTRES",),
)
_NEVER = frozenset({"", "unknown", "none", "(null)"})
_PRINTED_TIME = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?", re.A
)
_STEP = re.compile(r"\d+(?:[_+]\d+)?\.[\w.+-]+\Z", re.A)


class MissingColumns(ValueError):
    """The header lacks columns that an import needs; `names` are all of them."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(", ".join(names))
        self.names = tuple(names)


class SacctRow(NamedTuple):
    """One record: the fields of the wire's RunRecord, and the cluster where the file names it."""

    job_id: int
    user: str
    uid: int | None
    name: str
    account: str
    partition: str
    qos: str | None
    state: str
    submit_time: datetime
    eligible_time: datetime | None
    start_time: datetime | None
    end_time: datetime | None
    elapsed_seconds: int
    suspended_seconds: int
    time_limit_minutes: int | None
    nodes: int
    cpus: int
    alloc_tres: str
    req_tres: str
    node_list: str | None
    exit_code: int | None
    exit_signal: int | None
    restarts: int
    reason: str | None
    working_directory: str
    comment: str | None
    array_job_id: int | None
    array_task: int | None
    cancelled_by: str | None
    array_tasks: int | None
    cluster: str | None


def places(header: Sequence[str]) -> dict[str, int]:
    """Where each column stands, by its name in small letters; raises MissingColumns."""
    found = {name.strip().lower(): place for place, name in reversed(list(enumerate(header)))}
    missing = [
        " or ".join(names) for names in NEEDED if not any(name.lower() in found for name in names)
    ]
    if missing:
        raise MissingColumns(missing)
    return found


class Reader:
    """Reads the fields of a record in the order that a header gave."""

    def __init__(self, header: Sequence[str], zone: tzinfo) -> None:
        self.width = len(header)
        self._places = places(header)
        self._id_place = self._first("jobid", "jobidraw")
        self._zone = zone
        self._doubtful: set[str] = set()
        self._times = Remembered(self._time)
        self._states = Remembered(fields_of.state_of)
        self._seconds = Remembered(fields_of.seconds_of)
        self._limits = Remembered(fields_of.limit_of)
        self._exits = Remembered(fields_of.exit_of)
        self._counts = Remembered(fields_of.count_of)
        # A text that comes again is kept as one object: rows in flight cost less memory.
        self._texts = Remembered(fields_of.text_of)
        self._read = self._compile()

    def is_step(self, fields: Sequence[str]) -> bool:
        """`123.batch` and the like are parts of a job, not jobs."""
        return _STEP.match(fields[self._id_place]) is not None

    def row(self, fields: Sequence[str]) -> SacctRow:
        """Raises Unreadable. A single field that cannot be read is unknown, not an error."""
        return self._read(fields)

    def _compile(self) -> Callable[[Sequence[str]], SacctRow]:
        """The places are looked up once; an absent column reads the empty text behind the row."""
        p = self._first
        job_id, raw_id, user, uid = p("jobid"), p("jobidraw"), p("user"), p("uid")
        name, account, partition, qos = p("jobname"), p("account"), p("partition"), p("qos")
        state_at, submit, eligible = p("state"), p("submit"), p("eligible")
        start, end = p("start"), p("end")
        elapsed, suspended = p("elapsedraw", "elapsed"), p("suspendedraw", "suspended")
        limit = p("timelimitraw", "timelimit")
        nodes, cpus, asked = p("nnodes", "allocnodes"), p("ncpus", "alloccpus"), p("reqcpus")
        alloc, req, node_list = p("alloctres"), p("reqtres"), p("nodelist")
        exit_at, restarts, reason = p("exitcode"), p("restarts", "restartcnt"), p("reason")
        folder, comment, cluster = p("workdir"), p("comment"), p("cluster")
        times, states, seconds, limits = self._times, self._states, self._seconds, self._limits
        exits, counts, texts = self._exits, self._counts, self._texts
        tells_nodes = "nodelist" in self._places
        doubtful, width = self._doubtful, self.width
        make = tuple.__new__  # half the time of SacctRow(...)

        def read(given: Sequence[str]) -> SacctRow:
            f = [*given, ""]
            if len(f) != width + 1:
                raise Unreadable("field count")
            state = states[f[state_at]]
            number, array_id, task = fields_of.ids(f[raw_id], f[job_id])
            who = f[user]
            submitted = times[f[submit]]
            if submitted is None or not who:
                raise Unreadable("no time of submission" if who else "no user")
            began, ended = times[f[start]], times[f[end]]
            ran = seconds[f[elapsed]]
            if doubtful and (f[start] in doubtful or f[end] in doubtful):
                began, ended = self._by_elapsed(f[start], f[end], submitted, ran)
            held = texts[f[alloc]] or ""
            where = fields_of.nodes_of(f[node_list])
            if state.over:
                if not ran and where is None and _never(began, ended, held, tells_nodes):
                    began, held = None, ""
            else:
                ended = None
                if state.pending:
                    began = None
            if ran is None:
                ran = int((ended - began).total_seconds()) if began and ended else 0
            code, signal = exits[f[exit_at]]
            return make(
                SacctRow,
                (
                    number,
                    texts[who] or "",
                    counts[f[uid]],
                    f[name],
                    texts[f[account]] or "",
                    texts[f[partition]] or "",
                    texts[f[qos]],
                    state.name,
                    submitted,
                    times[f[eligible]],
                    began,
                    ended,
                    ran if began else 0,
                    seconds[f[suspended]] or 0,
                    limits[f[limit]],
                    counts[f[nodes]] or 0,
                    counts[f[cpus]] or counts[f[asked]] or 0,
                    held,
                    texts[f[req]] or "",
                    where,
                    code,
                    signal,
                    counts[f[restarts]] or 0,
                    fields_of.reason_of(f[reason]),
                    f[folder],
                    f[comment] or None,
                    array_id,
                    task,
                    state.cancelled_by,
                    fields_of.tasks_of(f[job_id] or f[raw_id]),
                    texts[f[cluster]],
                ),
            )

        return read

    def _first(self, *names: str) -> int:
        for name in names:
            if name in self._places:
                return self._places[name]
        return self.width

    def _time(self, text: str) -> datetime | None:
        """Naive times are in the dump's zone. Of an hour that comes twice, the first."""
        printed = text.strip()
        if printed.lower() in _NEVER:
            return None
        if printed.isascii() and printed.isdigit():
            return fields_of.epoch(int(printed))
        if not _PRINTED_TIME.fullmatch(printed):
            return None
        try:
            time = datetime.fromisoformat(printed)
            if time.tzinfo is not None:
                return time.astimezone(UTC)
            first = time.replace(tzinfo=self._zone)
            if first.utcoffset() != first.replace(fold=1).utcoffset():
                if len(self._doubtful) >= MOST_REMEMBERED:
                    self._doubtful.clear()
                self._doubtful.add(text)
            return first.astimezone(UTC)
        except (ValueError, OverflowError):
            return None

    def _by_elapsed(
        self, start: str, end: str, submitted: datetime, ran: int | None
    ) -> tuple[datetime | None, datetime | None]:
        """In the hour that a clock shows twice, the elapsed time tells which one was meant."""
        pairs = [(b, e) for b in self._readings(start) for e in self._readings(end)]
        for began, ended in pairs:
            fits = began and ended and (ended - began).total_seconds() == ran
            if fits and began and began >= submitted:
                return began, ended
        in_order = [
            (b, e)
            for b, e in pairs
            if (b is None or b >= submitted) and (b is None or e is None or e >= b)
        ]
        return (in_order or pairs)[0]

    def _readings(self, text: str) -> list[datetime | None]:
        first = self._times[text]
        if first is None or text not in self._doubtful:
            return [first]
        time = datetime.fromisoformat(text.strip()).replace(tzinfo=self._zone, fold=1)
        return [first, time.astimezone(UTC)]


def _never(began: datetime | None, ended: datetime | None, held: str, tells_nodes: bool) -> bool:
    """sacct of 17.02 wrote Start = End = the time of the cancel, and filled AllocTRES, for jobs
    that never started: no node and no second tells them."""
    return tells_nodes or not held or began == ended
