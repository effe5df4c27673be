"""Where the records of a `sacct -P` dump begin and end, though a user chose the text in them.

A job's name may hold the separator or a line break, and whole forged fields with them. A record
of a wrong width is understood only when there is one way to read it; else it is held with its
text. What nobody can tell: a text that holds a line break and then a whole valid record. Only a
separator that no user knows is safe from that.
"""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from itertools import combinations_with_replacement
from math import comb

from gateway.core.sacct_fields import Unreadable
from gateway.core.sacct_text import Reader, SacctRow

# Columns whose text a user chooses.
FREE = frozenset(
    {
        *("jobname", "comment", "admincomment", "systemcomment", "workdir", "submitline", "wckey"),
        *("constraints", "container", "extra", "stdin", "stdout", "stderr", "licenses"),
        *("mcslabel", "reservation"),
    }
)
_LOOK_AHEAD = 20  # lines that one text may hold
_MOST_SPLITS = 5000
_NAME = re.compile(r"\w+", re.A)

_WORD = r"[^\s|]*"
_TIME = r"\d{4}-\d\d-\d\d[T ][\d:.]+(?:Z|[+-][\d:]+)?|\d{1,12}|Unknown|None|\(null\)|"
_DURATION = r"(?:\d+-)?[\d:]+(?:\.\d+)?|UNLIMITED|Partition_Limit|INVALID|Unknown|"
_COUNT = r"(?:\d+(?:\.\d+)?[KMGTP]?)?"
_TRES = r"(?:[\w/:.+-]+=[\w.:+-]*(?:,[\w/:.+-]+=[\w.:+-]*)*)?"
_SHAPES = {
    "jobid": r"\d+(?:[_+]\d+|_\[[\d,:%.-]*\]?)?(?:\.[\w.+-]+)?",
    "jobidraw": r"\d+(?:[_+]\d+)?(?:\.[\w.+-]+)?",
    "state": r"[A-Z_]+\+?(?: by \d+)?",
    "exitcode": r"(?:\d+:\d+)?",
    "derivedexitcode": r"(?:\d+:\d+)?",
    "nodelist": r"[\w\[\],.-]*|None assigned",
    **dict.fromkeys(("submit", "eligible", "start", "end"), _TIME),
    **dict.fromkeys(("elapsed", "suspended", "timelimit", "totalcpu", "cputime"), _DURATION),
    **dict.fromkeys(("usercpu", "systemcpu", "reserved", "planned"), _DURATION),
    **dict.fromkeys(("uid", "gid", "elapsedraw", "cputimeraw", "priority", "restarts"), r"\d*"),
    "timelimitraw": _DURATION,
    **dict.fromkeys(("nnodes", "ncpus", "reqcpus", "alloccpus", "allocnodes"), _COUNT),
    **dict.fromkeys(("alloctres", "reqtres"), _TRES),
    **dict.fromkeys(("user", "account", "partition", "qos", "cluster", "group"), _WORD),
}
_KNOWN = {name: re.compile(shape, re.A) for name, shape in _SHAPES.items()}
_ANY = re.compile(r"[^\n]*")


class NoHeader(ValueError):
    """The first line does not name columns, or not with this separator."""


@dataclass(frozen=True, slots=True)
class Held:
    """Text that could not be understood, whole, and why."""

    raw: str
    reason: str


@dataclass(frozen=True, slots=True)
class Step:
    """Part of a job (`123.batch`): counted, not kept."""


STEP = Step()
Item = SacctRow | Held | Step


def find_delimiter(header: str) -> str:
    """The separator, of one or more signs, that stands between all names of the header."""
    found = re.match(r"\ufeff?[A-Za-z]\w*?([^\w\s]+|\t)(?=[A-Za-z])", header, re.A)
    if found and all(_NAME.fullmatch(name) for name in _names(header, found[1])):
        return found[1]
    raise NoHeader(header[:200])


def _names(header: str, delimiter: str) -> list[str]:
    """With `sacct -p` the line ends with a separator: the last column has no name."""
    names = header.removeprefix("\ufeff").split(delimiter)
    return names if names[-1] else names[:-1]


@dataclass(slots=True)
class _Open:
    """The newest record: a line break in its last column may still make it longer."""

    line: str
    fields: list[str]
    item: Item


class Dump:
    """Reads a dump's lines (without their line ends) as rows, steps and what is held.

    Raises NoHeader or MissingColumns at once. `records` counts what was found in the file,
    before anybody stored it; `text` is that of the newest.
    """

    def __init__(self, lines: Iterable[str], *, zone: tzinfo, delimiter: str | None = None) -> None:
        self._lines = iter(lines)
        header = next(self._lines, "")
        # Where the header ends in CR LF, all lines do; a lone CR belongs to a user's text.
        self._crlf = header.endswith("\r")
        self._header = header.removesuffix("\r")
        self.delimiter = delimiter or find_delimiter(self._header)
        names = self._header.removeprefix("\ufeff").split(self.delimiter)
        if len(names) < 2:
            raise NoHeader(header[:200])
        self._columns = [name.strip().lower() for name in names]
        self._free = [place for place, name in enumerate(self._columns) if name in FREE]
        self._grows = bool(self._free) and self._free[-1] == len(names) - 1
        self._width = len(names)
        self._reader = Reader(names, zone)
        self._ahead: deque[str] = deque()
        self._open: _Open | None = None
        self.records = 0
        self.text = ""

    def has(self, column: str) -> bool:
        return column.lower() in self._columns

    def __iter__(self) -> Iterator[Item]:
        width, delimiter = self._width, self.delimiter
        for line in self._each():
            fields = line.split(delimiter)
            item = self._plain(fields) if len(fields) == width else None
            if item is None:
                yield from self._irregular(line, fields)
                continue
            before, self._open = self._open, _Open(line, fields, item)
            if before is not None:
                self.records += 1
                self.text = before.line
                yield before.item
        yield from self._close()

    def _each(self) -> Iterator[str]:
        ahead = self._ahead
        while True:
            while ahead:
                yield ahead.popleft()
            line = next(self._lines, None)
            if line is None:
                return
            yield line.removesuffix("\r") if self._crlf else line

    def _plain(self, fields: list[str]) -> Item | None:
        """A record that needs no thought; None when it does."""
        try:
            return STEP if self._reader.is_step(fields) else self._reader.row(fields)
        except Unreadable:
            return None

    def _close(self) -> Iterator[Item]:
        closed, self._open = self._open, None
        if closed is not None:
            self.records += 1
            self.text = closed.line
            yield closed.item

    def _held(self, raw: str, reason: str) -> Iterator[Item]:
        self.records += 1
        yield Held(raw, reason)

    def _irregular(self, line: str, fields: list[str]) -> Iterator[Item]:
        if line == self._header or (not line and not self._grows):
            return  # dumps put one behind the other
        if len(fields) > self._width:
            yield from self._close()
            yield from self._wide(line)
        elif len(fields) < self._width and self._grows and self._open and not self._begins(fields):
            yield from self._continue(line)
        else:
            yield from self._narrow(line, fields)

    def _wide(self, line: str) -> Iterator[Item]:
        ways = self._splits(line)
        if len(ways) == 1:
            self._open = _Open(line, *ways[0])
        else:
            yield from self._held(line, _reason(ways, "more fields than the header has columns"))

    def _continue(self, line: str) -> Iterator[Item]:
        """A line break in the last column: nothing before it changes."""
        if not line and self._is_last():
            return
        assert self._open is not None
        fields = self._open.fields
        fields[-1] += f"\n{line}"
        self._open.line += f"\n{line}"
        item = self._plain(fields)
        assert item is not None
        self._open.item = item
        yield from ()

    def _is_last(self) -> bool:
        following = next(self._each(), None)
        if following is not None:
            self._ahead.appendleft(following)
        return following is None

    def _narrow(self, line: str, fields: list[str]) -> Iterator[Item]:
        """Too few fields, or a key that cannot be read: perhaps the rest is on the next lines."""
        text, taken = self._joined(line, cut_in_text=self._ends_in_text(fields))
        ways = self._splits(text) if taken else []
        whole = any(self._is_whole(part) for part in text.split("\n")[1:])
        before = self._open if len(fields) < self._width and not self._grows else None
        if len(ways) == 1 and not whole:
            yield from self._close()
            self._drop(taken)
            self._open = _Open(text, *ways[0])
        elif before and not self._begins(fields) and self._splits(f"{before.line}\n{line}"):
            # The record before fits with this line and without it.
            self._open = None
            yield from self._held(f"{before.line}\n{line}", _AMBIGUOUS)
        else:
            yield from self._close()
            # What stands on a line of its own may be a record, or a text that looks like one.
            self._drop(taken)
            yield from self._held(text, _AMBIGUOUS if taken else self._why(fields))

    def _joined(self, line: str, *, cut_in_text: bool) -> tuple[str, int]:
        """The line with those after it that make it a record, and how many they are."""
        text = line
        for count, following in enumerate(self._peek(), start=1):
            if not cut_in_text and self._is_whole(following):
                break
            text += f"\n{following}"
            if self._splits(text):
                return text, count
        return line, 0

    def _is_whole(self, line: str) -> bool:
        fields = line.split(self.delimiter)
        return len(fields) == self._width and self._plain(fields) is not None

    def _ends_in_text(self, fields: Sequence[str]) -> bool:
        """Whether the line may end inside a column of free text; else it was cut by accident."""
        if len(fields) >= self._width or not self._free or len(fields) <= self._free[0]:
            return False
        after = list(zip(self._columns, fields, strict=False))[self._free[0] + 1 : -1]
        return self._columns[len(fields) - 1] in FREE or not all(_fits(*pair) for pair in after)

    def _peek(self) -> Iterator[str]:
        """The next lines; they stay to be read until `_drop`."""
        lines = self._each()
        seen: list[str] = []
        while len(seen) < _LOOK_AHEAD:
            following = next(lines, None)
            if following is None:
                break
            seen.append(following)
        self._ahead.extendleft(reversed(seen))
        yield from seen

    def _drop(self, count: int) -> None:
        for _ in range(count):
            self._ahead.popleft()

    def _why(self, fields: list[str]) -> str:
        if len(fields) < self._width:
            return "too few fields"
        try:
            self._reader.row(fields)
        except Unreadable as error:
            return str(error)
        return "unreadable"

    def _begins(self, fields: Sequence[str]) -> bool:
        """Whether a narrow line looks like the beginning of a record that was cut."""
        # The field where it was cut has no shape any more.
        first = self._free[0] if self._free else self._width
        near = list(zip(self._columns[:first], fields[:-1], strict=False))
        return bool(near) and all(_fits(name, text) for name, text in near)

    def _splits(self, text: str) -> list[tuple[list[str], Item]]:
        """The ways to read a text as one record, two at most: the spare separators belong to
        columns of free text, and each other column must have its own shape."""
        parts = text.split(self.delimiter)
        spare = len(parts) - self._width
        if spare < 0 or (spare and not self._free):
            return []
        if spare and comb(spare + len(self._free) - 1, spare) > _MOST_SPLITS:
            return [([], Held(text, _AMBIGUOUS))] * 2
        ways: list[tuple[list[str], Item]] = []
        for owners in combinations_with_replacement(self._free, spare) if spare else [()]:
            fields = self._shared(parts, owners)
            if not all(_fits(*pair) for pair in zip(self._columns, fields, strict=True)):
                continue
            item = self._plain(fields)
            if item is not None:
                ways.append((fields, item))
            if len(ways) == 2:
                break
        return ways

    def _shared(self, parts: Sequence[str], owners: Sequence[int]) -> list[str]:
        fields, at = [], 0
        for place in range(self._width):
            end = at + 1 + owners.count(place)
            fields.append(self.delimiter.join(parts[at:end]))
            at = end
        return fields


_AMBIGUOUS = "a text with separators or line breaks: which fields are whose cannot be told"


def _reason(ways: Sequence[object], none: str) -> str:
    return _AMBIGUOUS if ways else none


def _fits(name: str, text: str) -> bool:
    return name in FREE or _KNOWN.get(name, _ANY).fullmatch(text) is not None
