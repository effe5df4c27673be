"""The SQL that makes rows of the history of a file's columns, and says what is wrong with a row.

Each step selects from the one before: texts, numbers and seconds, what follows from them, the
row. All times in between are whole seconds since 1970.
"""

# ruff: noqa: S608  # what a file or a person says is quoted by expressions.quoted and name

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import tzinfo

from gateway.core.csv_mapping import COUNTS, CsvMapping
from gateway.core.csv_names import NAMES, NUMBERS
from gateway.core.past_runs import COLUMNS
from gateway.core.states import JobState
from gateway.core.wait_causes import Cause
from gateway.core.zone_steps import LAST_YEAR, steps
from gateway.history.importing import expressions as sql

TIMES = ("submit", "eligible", "start", "end")
STEP, NO_ID = "step", "no job id"
NO_TASKS = "no whole list of tasks (SLURM_BITSTR_LEN=0 lets sacct print it)"
SACCT_IDS = frozenset({"jobid", "jobidraw"})
_STEPS = r"^\d+(?:[_+]\d+)?\.[\w.+-]+$"
_LAST = (LAST_YEAR - 1970) * 31_556_952
_LONGEST = 100 * 31_556_952  # seconds; no job runs for a century
_MOST = 1_000_000_000  # of anything that is counted
_GAVE_UP = tuple(
    state.value
    for state in (JobState.CANCELLED, JobState.DEADLINE, JobState.FAILED, JobState.BOOT_FAIL)
)


@dataclass(frozen=True, slots=True)
class Shape:
    """What is told of a file besides its mapping. `columns` are those of the table that holds it,
    by the names in its header, `raw_text` the row as it was written; `cluster` None: as the file
    says; `relative`: its times count from a second 0 that is a time; `now`: seconds since 1970.
    """

    columns: Mapping[str, str]
    raw_text: str
    source: str
    cluster: str | None
    zone: tzinfo
    relative: bool
    now: int


class Rows:
    """The query over the table `raw`, with `words` (sql.states_table) beside it."""

    def __init__(self, mapping: CsvMapping, shape: Shape) -> None:
        self._mapping, self._shape = mapping, shape
        self._early, self._late = steps(shape.zone)
        self._zero = mapping.zero if mapping.zero is not None else (0 if shape.relative else None)

    def query(self) -> str:
        """COLUMNS, `tasks` (of an array: how many such rows it is), `problem` (null: the row is
        good; STEP) and `raw`, the text of a bad row."""
        chosen = ", ".join(
            f'{sql.typed(expression, COLUMNS[column])} AS "{column}"'
            for column, expression in self._columns().items()
        )
        raw = f"CASE WHEN problem IS NOT NULL THEN {self._shape.raw_text} END"
        return (
            f"WITH texts AS ({self._texts()}), read_once AS ({self._numbers()}),"
            f" clocks AS ({self._clocks()}), seconds AS ({self._seconds()}),"
            f" told AS ({self._told()}), placed AS ({self._placed()}), judged AS ({self._judged()})"
            f" SELECT {chosen}, tasks, problem, {raw} AS raw FROM judged"
        )

    # Every step hands on what the later ones need; DuckDB leaves out what they do not.

    def _texts(self) -> str:
        chosen = ", ".join(f"{self._text(what)} AS {what}_t" for what in NAMES)
        return f"SELECT *, {chosen} FROM raw"

    def _text(self, what: str) -> str:
        if what == "cluster" and self._shape.cluster is not None:
            return sql.quoted(self._shape.cluster)
        if what in self._mapping.columns:
            column = sql.name(self._shape.columns[self._mapping.columns[what]])
            return f"nullif(trim({column}), '')"
        constant = self._mapping.constants.get(what)
        return "CAST(NULL AS VARCHAR)" if constant is None else sql.quoted(constant)

    def _has(self, what: str) -> bool:
        return what in self._mapping.columns or what in self._mapping.constants

    def _numbers(self) -> str:
        unit = self._mapping.seconds("times")
        parts = []
        for what in TIMES:
            text = f"{what}_t"
            number = sql.number_time(text, unit=unit, zero=self._zero)
            if what != "submit" and self._zero is not None:
                # In a trace that counts from its own begin, 0 is a time for its first jobs alone.
                number = f"CASE WHEN NOT {self._is_no_number(what)} THEN {number} END"
            clock = sql.clock_time(text, self._mapping.time_format)
            names_zone = sql.names_zone(text, self._mapping.time_format)
            parts += [f"{number} AS {what}_n", f"{clock} AS {what}_l", f"{names_zone} AS {what}_z"]
        for what in ("elapsed", "wait", "suspended"):
            seconds = sql.duration(f"{what}_t", self._mapping.seconds(what))
            parts.append(f"{sql.whole_seconds(seconds)} AS {what}_s")
        limit = sql.limit_minutes("limit_t", self._mapping.seconds("limit"))
        counts = (
            f"{sql.count(f'{what}_t', self._mapping.factors.get(what, 1.0))} AS {what}_c"
            for what in (*COUNTS, "restarts")
        )
        return f"SELECT *, {', '.join([*parts, f'{limit} AS limit_m', *counts])} FROM texts"

    def _clocks(self) -> str:
        """The two readings of each time: of one that comes once, they are the same."""
        parts = []
        for what in TIMES:
            for reading, table in (("e", self._early), ("f", self._late)):
                parts.append(f"{sql.utc(what, table)} AS {what}_{reading}")
        return f"SELECT *, {', '.join(parts)} FROM read_once"

    def _seconds(self) -> str:
        """Of an hour that a clock shows twice, the reading of start and end that the elapsed time
        tells; else the first that is in order, else the earlier."""
        doubtful = "(start_e <> start_f OR end_e <> end_f)"
        pairs = [(s, e) for s in ("start_e", "start_f") for e in ("end_e", "end_f")]
        begun = "coalesce({s} >= submit_e, true)"
        exact = f"{{e}} - {{s}} = elapsed_s AND {begun}"
        ordered = f"{begun} AND coalesce({{e}} >= {{s}}, true)"
        cases = [
            f"WHEN {rule.format(s=start, e=end)} THEN {{{place}}}"
            for rule in (exact, ordered)
            for place, (start, end) in enumerate(pairs)
        ]
        chosen = [
            f"CASE WHEN NOT coalesce({doubtful}, false) THEN {pairs[0][side]} "
            + " ".join(cases).format(*(pair[side] for pair in pairs))
            + f" ELSE {pairs[0][side]} END"
            for side in (0, 1)
        ]
        wrong = self._no_times()
        return (
            f"SELECT *, submit_e AS submit_s, eligible_e AS eligible_s, {chosen[0]} AS start_s,"
            f" {chosen[1]} AS end_s, {wrong} AS no_time FROM clocks"
        )

    def _no_times(self) -> str:
        cases = " ".join(
            f"WHEN {what}_e IS NULL AND NOT {sql.is_never(f'{what}_t')}"
            f" AND NOT {self._is_no_number(what)}"
            f" THEN '{what}: no time: ' || left({what}_t, 40)"
            for what in TIMES
            if self._has(what)
        )
        return f"CASE {cases} END" if cases else "CAST(NULL AS VARCHAR)"

    def _is_no_number(self, what: str) -> str:
        if self._zero is None:
            return sql.is_unset(f"{what}_t", unit=self._mapping.seconds("times"))
        later = "try_cast(submit_t AS DOUBLE) > 0"
        return f"coalesce(try_cast({what}_t AS DOUBLE) = 0 AND {later}, false)"

    def _told(self) -> str:
        """What is not in the file but follows from it, and the state in Slurm's words."""
        submit = "coalesce(submit_s, start_s - wait_s)"
        start = "coalesce(start_s, submit_s + wait_s, end_s - elapsed_s)"
        # Where nobody tells when a job became eligible, it was so when it was submitted.
        eligible = "told.eligible_s" if self._has("eligible") else "told.submit_s"
        number = "try_cast(state_t AS INTEGER)"
        numbered = " ".join(
            f"WHEN {number} & 255 = {place} THEN {sql.quoted(state)}"
            for place, state in enumerate(NUMBERS)
        )
        word = (
            "CASE WHEN contains(state_t, ' by ') THEN split_part(state_t, ' by ', 1)"
            f" WHEN {sql.is_number('state_t')} AND NOT state_t IN"
            f" ({sql.listed(['', *self._mapping.states])}) THEN CASE {numbered} END"
            " ELSE state_t END"
        )
        return (
            f"SELECT told.* REPLACE ({eligible} AS eligible_s),"
            " words.state, coalesce(words.over, false) AS over,"
            " coalesce(words.pending, false) AS pending, coalesce(words.slurm, false) AS slurm,"
            " told.state_t IS NULL OR words.word IS NOT NULL AS state_known"
            f" FROM (SELECT * REPLACE ({submit} AS submit_s, {start} AS start_s),"
            f" {word} AS word FROM seconds) AS told"
            " LEFT JOIN words ON words.word = told.word"
        )

    def _placed(self) -> str:
        """What started, and when it ended."""
        nowhere = f"lower(node_list_t) IN ({sql.listed(sql.NOBODY)})"
        if "node_list" in self._mapping.columns:
            nowhere = f"(node_list_t IS NULL OR {nowhere})"
        else:
            gave_up = f"state IN ({sql.listed(_GAVE_UP)})"
            nowhere = f"({gave_up} AND coalesce(start_s = end_s, true))"
        # sacct before 17.11 wrote Start = End = the time of the cancel for who never started.
        never = f"(over AND slurm AND coalesce(elapsed_s, end_s - start_s, 0) = 0 AND {nowhere})"
        if self._mapping.started == "start":
            never = "false"
        start = f"CASE WHEN (pending AND slurm) OR {never} THEN NULL ELSE start_s END"
        end = (
            "CASE WHEN slurm AND NOT over THEN NULL"
            f" ELSE coalesce(end_s, CASE WHEN NOT {never} THEN start_s + elapsed_s END) END"
        )
        return (
            f"SELECT * REPLACE ({start} AS start_s, {end} AS end_s),"
            f" {start} IS NOT NULL AS started FROM told"
        )

    def _judged(self) -> str:
        gpus = self._from_tres("gpus_c", lambda text: sql.tres_gpus(text, self._gpu_ids()))
        cpus = self._from_tres("cpus_c", lambda text: sql.either(text, "cpu", "1"))
        nodes = self._from_tres("nodes_c", lambda text: sql.either(text, "node", "4"))
        kind = self._from_tres("gpu_type_t", sql.tres_gpu_type)
        # Never what was given: who learns from the row did not know that before the start.
        asked = f"coalesce(req_gpu_type_t, {sql.tres_gpu_type('req_tres_t')})"
        ran = "CASE WHEN started THEN coalesce(elapsed_s, end_s - start_s) ELSE 0 END"
        with_counts = (
            f"SELECT *, {gpus} AS gpus, {kind} AS gpu_type, {asked} AS req_gpu_type,"
            f" {cpus} AS cpus, {nodes} AS nodes, {ran} AS ran, {self._tasks()} AS tasks,"
            f" coalesce(start_s, end_s, {self._shape.now}) AS until FROM placed"
        )
        return f"SELECT *, {self._problem()} AS problem FROM ({with_counts})"

    def _tasks(self) -> str:
        """Slurm keeps the tasks of an array that have not started in one record."""
        text = f"{self._listing()}_t"
        return f"CASE WHEN NOT started AND {sql.is_array(text)} THEN {sql.tasks(text)} ELSE 1 END"

    def _listing(self) -> str:
        return "tasks" if self._has("tasks") else "id"

    def _from_tres(self, own: str, expression: Callable[[str], str]) -> str:
        """Of who started what was given, of others what was asked for."""
        return (
            f"coalesce({own}, CASE WHEN started THEN coalesce({expression('tres_t')},"
            f" {expression('req_tres_t')}) ELSE coalesce({expression('req_tres_t')},"
            f" {expression('tres_t')}) END)"
        )

    def _gpu_ids(self) -> list[int]:
        return [
            number for number, name in self._mapping.tres.items() if name.startswith("gres/gpu")
        ]

    def _problem(self) -> str:
        seconds = [f"{what}_s" for what in TIMES]
        outside = " OR ".join(f"{one} NOT BETWEEN 0 AND {_LAST}" for one in seconds)
        counts = ("gpus", "cpus", "nodes", "restarts_c", "ran", "suspended_s", "limit_m")
        negative = " OR ".join(f"{one} < 0" for one in counts)
        large = " OR ".join(f"{one} > {_MOST}" for one in counts[:4])
        return (
            f"CASE WHEN {self._step()} THEN '{STEP}'"
            f" WHEN {'id_t IS NULL' if self._has('id') else 'false'} THEN '{NO_ID}'"
            " WHEN no_time IS NOT NULL THEN no_time"
            " WHEN submit_s IS NULL THEN 'no time of submission'"
            f" WHEN tasks = 0 THEN '{NO_TASKS}: ' || left({self._listing()}_t, 40)"
            " WHEN NOT state_known THEN 'no job state: ' || left(state_t, 40)"
            f" WHEN {outside} THEN 'a time before 1970 or after {LAST_YEAR}'"
            " WHEN start_s < submit_s THEN 'it starts before it is submitted'"
            " WHEN over AND end_s IS NULL THEN 'it is over, but no time tells when'"
            " WHEN end_s < coalesce(start_s, submit_s) THEN 'it ends before it begins'"
            f" WHEN {negative} THEN 'a number below 0'"
            f" WHEN {large} OR ran > {_LONGEST} THEN 'a number that no cluster has' END"
        )

    def _step(self) -> str:
        if self._mapping.columns.get("id", "").strip().lower() not in SACCT_IDS:
            return "false"
        return f"contains(id_t, '.') AND regexp_matches(id_t, '{_STEPS}')"

    def _columns(self) -> dict[str, str]:
        """Of each column of the history; what no file tells is null."""
        deferral = "least(greatest(coalesce(eligible_s, until) - submit_s, 0), until - submit_s)"
        causes = {f"cause_{cause}": "0" for cause in Cause}
        causes[f"cause_{Cause.DEFERRAL}"] = deferral
        causes[f"cause_{Cause.UNKNOWN}"] = f"until - submit_s - {deferral}"
        waits = "start_s IS NULL AND end_s IS NULL"
        told = {
            "cluster": "cluster_t",
            "slurm_id": self._id(),
            "user": "user_t",
            "group": "group_t",
            "partition": "partition_t",
            "qos": "qos_t",
            "template": "template_t",
            "state": "state",
            **{f"{what}_time": f"{what}_s" for what in TIMES},
            "elapsed_seconds": "ran",
            "suspended_seconds": "coalesce(suspended_s, 0)",
            "limit_minutes": "limit_m",
            "nodes": "nodes",
            "cpus": "cpus",
            "gpus": "gpus",
            "gpu_type": "gpu_type",
            "req_gpu_type": "req_gpu_type",
            "restarts": "coalesce(restarts_c, 0)",
            "alloc_tres": "CASE WHEN started THEN tres_t END",
            "source": sql.quoted(self._shape.source),
            "seen_at": f"CASE WHEN {waits} THEN {self._shape.now} END",
            **causes,
        }
        return {column: told.get(column, "NULL") for column in COLUMNS}

    def _id(self) -> str:
        """The number itself; of another text, or of a row without one, a number made of it."""
        if not self._has("id"):
            return sql.made_of(self._shape.raw_text)
        text = "id_t || '_' || array_t" if self._has("array") else "id_t"
        short = f"{sql.is_number(text)} AND length({text}) < 18"
        listed = sql.is_array("id_t")
        return (
            f"CASE WHEN {short} THEN try_cast({text} AS BIGINT)"
            # While no task has left the array, its record has the array's own id.
            f" WHEN {listed} THEN try_cast(split_part(id_t, '_', 1) AS BIGINT)"
            f" ELSE {sql.made_of(text)} END"
        )
