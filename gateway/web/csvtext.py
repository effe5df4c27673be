"""Rows of CSV that a table program opens without taking a text for a formula."""

import csv
import io
import re
from collections.abc import Iterable

_FORMULA = re.compile(r"[\s\x00-\x1f]*[=+\-@\uff1d\uff0b\uff0d\uff20\t\r\n]")
_NUMBER = re.compile(r"-?\d+(\.\d+)?", re.ASCII)


def csv_row(values: Iterable[object]) -> str:
    """One line. A text that could be a formula gets a ' before it; numbers stay numbers."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerow([_tame(str(value)) for value in values])
    return out.getvalue()


def _tame(value: str) -> str:
    if _NUMBER.fullmatch(value) or not _FORMULA.match(value):
        return value
    return f"'{value}"
