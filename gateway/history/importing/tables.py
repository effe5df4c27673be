"""A file of jobs as the table `raw` of a DuckDB connection, all columns text."""

# ruff: noqa: S608  # what a file or a person says is quoted by expressions.quoted and name

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.core import swf
from gateway.core.csv_mapping import BadMapping, CsvMapping, recognised
from gateway.history.importing import expressions as sql
from gateway.history.importing.rows import SACCT_IDS

if TYPE_CHECKING:
    import duckdb

SAMPLE = 20_000  # rows that are looked at before all are read
_DELIMITERS = (",", "\t", ";", "|")
_NO_DELIMITERS = frozenset('"\r\n')
_SACCT = "|"
_LONGEST_LINE = 16 * 2**20
_EPOCH = 1_000_000_000  # September 2001: smaller numbers count from a trace's own begin
_FAULTS = {
    "MISSING COLUMNS": "too few fields",
    "TOO MANY COLUMNS": "too many fields",
    "UNQUOTED VALUE": "a quote that nothing closes",
    "LINE SIZE OVER MAXIMUM": "too long a line",
    "INVALID ENCODING": "bytes that are not UTF-8",
}


@dataclass(frozen=True, slots=True)
class Torn:
    """A row that has no shape: its line, text and what is wrong. `last`: the file ends in it."""

    line: int
    raw: str
    reason: str
    last: bool


@dataclass(frozen=True, slots=True)
class Table:
    """`source`: what `raw` selects from; `sample` the first rows of it. `columns`: those of `raw`
    by the names in the file's header. `raw_text`: the row as it was written."""

    mapping: CsvMapping
    columns: Mapping[str, str]
    source: str
    sample: str
    raw_text: str


def csv_table(path: Path, given: CsvMapping | None, delimiter: str | None) -> Table:
    """Raises BadMapping where the header does not say what a history needs."""
    first = _first_line(path)
    separator = delimiter or (given.delimiter if given else None) or _likely(first)
    if len(separator) != 1 or separator in _NO_DELIMITERS:
        raise BadMapping(f"{separator!r} is no delimiter: it is one character, and no quote")
    header = next(csv.reader([first], delimiter=separator), [])
    mapping = replace(recognised(header, given), delimiter=separator)
    # The last of two columns with one name is not to be had by it.
    columns = {name: f"c{place}" for place, name in reversed(list(enumerate(header)))}
    everything = [f"c{place}" for place in range(len(header))]
    text = f" || {sql.quoted(separator)} || ".join(f"coalesce({one}, '')" for one in everything)
    # `sacct -P` prints a quote as it is: it begins no field that goes on to the next one.
    quotes = separator != _SACCT or SACCT_IDS.isdisjoint(map(str.lower, header))
    how = f"delim = {sql.quoted(separator)}, header = true"
    read = _reading(path, everything, how, quotes=quotes)
    return Table(
        mapping,
        columns,
        f"{read}, store_rejects = true, rejects_limit = 0)",
        f"{read}, ignore_errors = true) LIMIT {SAMPLE}",
        f"({text})",
    )


def swf_table(path: Path, given: CsvMapping | None) -> Table:
    """A cancelled job that ran no second never started: its wait says when it was given up."""
    with path.open(encoding="utf-8", errors="replace") as file:
        told = swf.head(islice(file, 10_000))
    read = _reading(path, ["line"], "delim = '\\x01', header = false", quotes=False)
    fields = {name: f"nullif(f[{place}], '-1')" for place, name in enumerate(swf.FIELDS, start=1)}
    parts = f"f[11] IN ({sql.listed(swf.PARTS)})"
    never = "(f[11] = '5' AND coalesce(try_cast(f[4] AS DOUBLE) <= 0, true))"
    until = "CAST(try_cast(f[2] AS DOUBLE) + try_cast(f[3] AS DOUBLE) AS VARCHAR)"
    chosen = {
        # A step, as `sacct` names one.
        "jobid": f"CASE WHEN len(f) = 18 THEN f[1] || if({parts}, '.part', '') END",
        "submit": fields["submit"],
        "wait": f"CASE WHEN NOT {never} THEN {fields['wait']} END",
        "elapsed": f"CASE WHEN NOT {never} THEN {fields['run']} END",
        "end": f"CASE WHEN {never} AND f[3] <> '-1' THEN {until} END",
        "cpus": f"coalesce({fields['processors']}, {fields['asked_processors']})",
        "limit": fields["asked_time"],
        "state": fields["status"],
        "user": fields["user"],
        "group": fields["group"],
        "partition": f"coalesce({fields['partition']}, {fields['queue']})",
        "qos": fields["queue"],
    }
    listed = ", ".join(f"{expression} AS c_{name}" for name, expression in chosen.items())
    split = "regexp_split_to_array(trim(line), '\\s+') AS f"
    ours = f"(SELECT line, {listed} FROM (SELECT line, {split} FROM {read})"
    ours += " WHERE NOT starts_with(ltrim(line), ';') AND trim(line) <> ''))"
    columns = {name: f"c_{name}" for name in chosen}
    mapping = CsvMapping(
        columns={("id" if name == "jobid" else name): name for name in chosen},
        constants=given.constants if given else {},
        states=swf.STATES,
        zero=told.begin or 0,
    )
    return Table(mapping, columns, ours, f"{ours} LIMIT {SAMPLE}", "line")


def make(connection: "duckdb.DuckDBPyConnection", table: Table, *, sample: bool) -> None:
    """The view `raw`."""
    source = table.sample if sample else table.source
    connection.execute(f"CREATE OR REPLACE TEMP VIEW raw AS SELECT * FROM {source}")


def counts_from_its_begin(connection: "duckdb.DuckDBPyConnection", table: Table) -> bool:
    """Whether the times are numbers of a trace's own clock, whose second 0 is a time."""
    column = table.mapping.columns.get("submit") or table.mapping.columns.get("start")
    if column is None or table.mapping.zero is not None:
        return False
    number = f"try_cast({sql.name(table.columns[column])} AS DOUBLE)"
    row = connection.execute(f"SELECT max({number}) FROM (SELECT * FROM {table.sample})").fetchone()
    unit = table.mapping.seconds("times")
    return row is not None and row[0] is not None and row[0] * unit < _EPOCH


def torn(connection: "duckdb.DuckDBPyConnection", path: Path) -> Iterator[Torn]:
    """The rows that the reader of CSV could not take apart, after `raw` was read."""
    if not connection.execute(
        "SELECT 1 FROM duckdb_tables() WHERE table_name = 'reject_errors'"
    ).fetchone():
        return
    cursor = connection.execute(
        "SELECT line, any_value(csv_line), min(error_type) FROM reject_errors GROUP BY line"
        " ORDER BY line"
    )
    while rows := cursor.fetchmany(1000):
        for line, raw, fault in rows:
            text = str(raw or "").rstrip("\n")
            last = fault in {"MISSING COLUMNS", "UNQUOTED VALUE"} and _ends_in(path, text, fault)
            yield Torn(int(line), text, _FAULTS.get(fault, str(fault).lower()), last)


def _ends_in(path: Path, text: str, fault: str) -> bool:
    """Whether the file's end is this text, without a line end where that is what is missing."""
    wanted = text.encode()
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - len(wanted) - 2))
        end = file.read()
    return end.rstrip(b"\n").endswith(wanted) and (
        fault == "UNQUOTED VALUE" or not end.endswith(b"\n")
    )


def _reading(path: Path, columns: Sequence[str], how: str, *, quotes: bool) -> str:
    """The call without its closing bracket."""
    types = ", ".join(f"{sql.quoted(column)}: 'VARCHAR'" for column in columns)
    quote = "quote = '\"', escape = '\"'" if quotes else "quote = '', escape = ''"
    return (
        f"read_csv({sql.quoted(str(path))}, {how}, columns = {{{types}}}, auto_detect = false,"
        f" {quote}, max_line_size = {_LONGEST_LINE}"
    )


def _first_line(path: Path) -> str:
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        line = file.readline(1_000_000).rstrip("\r\n")
    if not line.strip():
        raise BadMapping("the file is empty, or its first line is")
    return line


def _likely(header: str) -> str:
    found = max(_DELIMITERS, key=header.count)
    if found not in header:
        raise BadMapping(
            f"the first line does not name columns: {header[:80]!r}. Give --delimiter where it is"
            " another one than comma, tab, ; and |"
        )
    return found
