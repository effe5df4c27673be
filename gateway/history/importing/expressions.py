"""SQL that reads single texts of a history: times, durations, counts, resources.

Each function gives an expression over a column of text that is null where nothing stands. What
cannot be read is null too; whether that is a fault is said by `rows`.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gateway.core.arrays import tasks_told
from gateway.core.csv_mapping import CsvMapping
from gateway.core.csv_names import state_words
from gateway.core.past_runs import ColumnType
from gateway.core.states import JobState
from gateway.core.zone_steps import Step

if TYPE_CHECKING:
    import duckdb

NEVER = ("unknown", "none", "null", "(null)", "nan", "nat", "n/a", "na", "-", "-1")
NO_LIMIT = ("unlimited", "infinite", "partition_limit")
NOBODY = ("none assigned", "none", "unknown", "(null)")
_NOT_SET = 0xFFFFFFFE  # Slurm's 32 bits for "not set", and with one more for "no limit"


def quoted(text: str) -> str:
    """A literal; nothing of a file or of a person reaches SQL in another way."""
    return "'" + text.replace("'", "''") + "'"


def name(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def listed(words: Sequence[str]) -> str:
    return ", ".join(map(quoted, words))


def is_never(text: str) -> str:
    """A word for "there is none". Slurm's own numbers for it are looked at as numbers."""
    return f"({text} IS NULL OR lower({text}) IN ({listed(NEVER)}))"


def number_time(text: str, *, unit: float, zero: int | None) -> str:
    """Whole seconds since 1970 of a bare number. With `zero` None, 0 is no time."""
    number = f"try_cast({text} AS DOUBLE)"
    seconds = f"try_cast(floor({number} * {unit!r}) AS BIGINT)"
    if zero is not None:
        return f"CASE WHEN {number} >= 0 THEN {seconds} + {zero} END"
    return f"CASE WHEN {number} > 0 AND {number} < {_NOT_SET / unit!r} THEN {seconds} END"


def is_unset(text: str, *, unit: float) -> str:
    """Numbers by which Slurm says that there is no time."""
    number = f"try_cast({text} AS DOUBLE)"
    return f"coalesce({number} IN (0, {_NOT_SET / unit!r}, {(_NOT_SET + 1) / unit!r}), false)"


def clock_time(text: str, form: str | None) -> str:
    """Whole seconds since 1970 as if a naive time were of UTC; one with a zone is."""
    if form is not None:
        return f"try_cast(floor(epoch(try_strptime({text}, {quoted(form)}))) AS BIGINT)"
    # A TIMESTAMP leaves out the zone that a text names; TIMESTAMPTZ takes three times as long.
    seconds = (
        f"CASE WHEN {names_zone(text, None)} THEN epoch(try_cast({text} AS TIMESTAMPTZ))"
        f" ELSE epoch(try_cast({text} AS TIMESTAMP)) END"
    )
    return f"try_cast(floor({seconds}) AS BIGINT)"


def names_zone(text: str, form: str | None) -> str:
    if form is not None:
        return "true" if "%z" in form else "false"
    suffix = r"(?:Z|z|UTC|[+-]\d\d(?::?\d\d)?)$"
    return (
        f"CASE WHEN length({text}) = 19 THEN false"
        f" ELSE contains({text}, ':') AND regexp_matches(substr({text}, 11), '{suffix}') END"
    )


def offset(local: str, steps: Sequence[Step]) -> str:
    """The distance from UTC at a naive second: a tree of comparisons."""
    if len(steps) == 1:
        return str(steps[0].offset)
    middle = len(steps) // 2
    early, late = offset(local, steps[:middle]), offset(local, steps[middle:])
    return f"CASE WHEN {local} < {steps[middle].since} THEN {early} ELSE {late} END"


def duration(text: str, unit: float) -> str:
    """Seconds, with their fraction: of a bare number in units of so many, or of `D-HH:MM:SS`,
    `N days HH:MM:SS`, `HH:MM:SS`, `MM:SS` as sacct and pandas print them."""
    clock = r"^(?:(\d+)(?:-| days?,? ?))?(?:(\d+):)?(\d+):(\d+(?:\.\d+)?)$"
    found = f"regexp_extract({text}, '{clock}', ['d', 'h', 'm', 's'])"
    parts = " + ".join(
        f"coalesce(try_cast({found}.{part} AS DOUBLE), 0) * {seconds}"
        for part, seconds in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))
    )
    return (
        f"CASE WHEN try_cast({text} AS DOUBLE) IS NOT NULL THEN try_cast({text} AS DOUBLE)"
        f" * {unit!r} WHEN regexp_matches({text}, '{clock}') THEN {parts} END"
    )


def whole_seconds(seconds: str) -> str:
    return f"try_cast(floor({seconds}) AS BIGINT)"


def limit_minutes(text: str, unit: float) -> str:
    """Minutes, rounded up; null for no limit and for one that is not decided."""
    number = f"try_cast({text} AS DOUBLE)"
    none = f"coalesce({number} IN ({_NOT_SET}, {_NOT_SET + 1}), false)"
    return (
        f"CASE WHEN {none} THEN NULL"
        f" ELSE try_cast(ceil(({duration(text, unit)}) / 60) AS BIGINT) END"
    )


def count(text: str, factor: float) -> str:
    """A whole number; part of one counts as one: a share of a card holds a card."""
    unset = f"{_NOT_SET}, {_NOT_SET + 1}"
    number = f"try_cast({text} AS DOUBLE)"
    return (
        f"CASE WHEN {number} IN ({unset}) THEN NULL"
        f" ELSE try_cast(ceil({number} * {factor!r}) AS BIGINT) END"
    )


def tres_count(text: str, resource: str) -> str:
    """The count of a resource in `cpu=24,node=1`, null where it is not named."""
    found = f"regexp_extract({text}, '(?:^|,){resource}=(\\d+)(?:\\.\\d+)?(?:,|$)', 1)"
    return f"CASE WHEN contains({text}, '{resource}=') THEN try_cast({found} AS BIGINT) END"


def tres_gpus(text: str, gpu_ids: Sequence[int]) -> str:
    """Cards in a text of TRES: the untyped entry, else the sum of the typed ones (core.tres), else
    of the numbers in `gpu_ids`. Without any, the largest above 1000: a site's own resources begin
    there, and its cards are counted once by type and once together. Null for no TRES."""
    typed = _summed(text, r"(?:^|,)gres/gpu:[^=,]+=(\d+)")
    if gpu_ids:
        numbered = _numbers(text, f"(?:^|,)(?:{'|'.join(map(str, gpu_ids))})=(\\d+)")
    else:
        numbered = _numbers(text, r"(?:^|,)1\d{3}=(\d+)")
    return (
        f"CASE WHEN {text} IS NULL OR NOT contains({text}, '=') THEN NULL"
        f" WHEN contains({text}, 'gres/gpu')"
        f" THEN coalesce({tres_count(text, 'gres/gpu')}, {typed}, 0)"
        # Numbers stand for all resources of a text or for none.
        f" WHEN left({text}, 1) BETWEEN '0' AND '9' THEN coalesce(list_max({numbered}), 0)"
        " ELSE 0 END"
    )


def tres_gpu_type(text: str) -> str:
    """The type, where there is one and it is that of every card."""
    types = rf"list_distinct(regexp_extract_all({text}, '(?:^|,)gres/gpu:([^=,]+)=[1-9]', 1))"
    whole = f"coalesce({tres_count(text, 'gres/gpu')}, -1)"
    typed = _summed(text, r"(?:^|,)gres/gpu:[^=,]+=(\d+)")
    return (
        f"CASE WHEN contains({text}, 'gres/gpu:') AND len({types}) = 1"
        f" AND ({whole} = -1 OR {whole} = {typed}) THEN {types}[1] END"
    )


def _numbers(text: str, pattern: str) -> str:
    # \d+ may be more than 64 bits hold: such a resource is none.
    found = f"regexp_extract_all({text}, '{pattern}', 1)"
    return f"list_transform({found}, lambda one: try_cast(one AS BIGINT))"


def _summed(text: str, pattern: str) -> str:
    return f"list_sum({_numbers(text, pattern)})::BIGINT"


def states_table(mapping: CsvMapping) -> str:
    """Rows of (word, state, over, pending, slurm): each word for a state that a file may have."""
    own = {word: (state, False) for word, state in mapping.states.items()}
    known = {word: (state, slurm) for word, state, slurm in state_words()} | own
    rows = (
        f"({quoted(word)}, {_literal(state)}, {bool(state and state.ends_run)},"
        f" {bool(state and state.is_pending)}, {slurm})"
        for word, (state, slurm) in known.items()
    )
    names = "word, state, over, pending, slurm"
    return f"SELECT * FROM (VALUES {', '.join(rows)}) AS t({names})"  # noqa: S608  # quoted


def _literal(state: JobState | None) -> str:
    return "NULL" if state is None else quoted(state)


def made_of(text: str) -> str:
    # DuckDB's own hash may be another one in its next release: then a file would come in twice.
    return f"(md5_number_lower({text}) >> 2)::BIGINT"


def is_array(text: str) -> str:
    """Of other systems, `900[5]` is one task."""
    return f"contains({text}, '_[') AND regexp_matches({text}, '^\\d{{1,17}}_\\[')"


def tasks(text: str) -> str:
    """How many tasks a list names, 0 where that is not to be told; see `with_tasks`."""
    return f"tasks_told({text})"


def with_tasks(connection: "duckdb.DuckDBPyConnection") -> None:
    """Makes `tasks` known: few rows have a list, and Python has read such lists all along."""
    connection.create_function(
        "tasks_told", lambda text: tasks_told(text) or 0, ["VARCHAR"], "BIGINT"
    )


def is_number(text: str) -> str:
    return f"regexp_full_match({text}, '\\d+')"


def either(text: str, resource: str, number: str) -> str:
    return f"coalesce({tres_count(text, resource)}, {tres_count(text, number)})"


def utc(what: str, table: Sequence[Step]) -> str:
    local = f"{what}_l"
    shifted = f"{local} - ({offset(local, table)})"
    clock = f"CASE WHEN {what}_z THEN {local} ELSE {shifted} END"
    return f"CASE WHEN {local} IS NULL THEN {what}_n ELSE {clock} END"


def typed(expression: str, kind: ColumnType) -> str:
    if kind is ColumnType.TIME:
        return f"make_timestamp(({expression})::BIGINT * 1000000)"
    return f"CAST({expression} AS {kind.value})"
