"""A table that a person pastes: a line of names, then a row of values a line.

Read as CSV is (RFC 4180), with tabs instead of commas where the first line holds one: that is
what a spreadsheet copies. Spaces around a value do not count.
"""

import csv
import io
import re
from dataclasses import dataclass

from gateway.errors import Refused

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Table:
    """Every row has as many values as there are names."""

    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class BadTable(Refused):
    """`code` is a message key; `row` in the facts counts rows of values from 1."""


def read_table(text: str, *, most_rows: int) -> Table:
    """The table, or BadTable. An empty text is a table without rows."""
    lines = [line for line in _lines(text) if any(line)]
    if not lines:
        return Table((), ())
    names, *rows = lines
    for name in names:
        if not _NAME.fullmatch(name):
            raise BadTable("table_name", name=name[:64])
        if names.count(name) > 1:
            raise BadTable("table_name_twice", name=name)
    if not rows:
        raise BadTable("table_no_rows")
    if len(rows) > most_rows:
        raise BadTable("table_too_many_rows", rows=len(rows), max=most_rows)
    for number, row in enumerate(rows, start=1):
        if len(row) != len(names):
            raise BadTable("table_row", row=number, values=len(row), names=len(names))
    return Table(names, tuple(rows))


def _lines(text: str) -> list[tuple[str, ...]]:
    delimiter = "\t" if "\t" in text.partition("\n")[0] else ","
    # By lines as CSV has them: a line break within quotes is a part of the value, and the further
    # breaks of Unicode are no breaks at all. Either is for the caller to refuse, not to take away.
    lines = io.StringIO(text, newline="")
    try:
        read = list(csv.reader(lines, delimiter=delimiter, skipinitialspace=True, strict=True))
    except csv.Error as error:
        raise BadTable("table_quotes") from error
    return [tuple(value.strip() for value in row) for row in read]
