"""The list `jobs` of a long JSON text (`sacct --json`, slurmrestd), one element at a time."""

import json
from collections.abc import Iterator
from typing import Protocol

_PART = 2**20
_LONGEST = 256 * _PART  # of one element


class NoJobs(ValueError):
    """The text is no JSON, or has no list of jobs."""


class CutShort(ValueError):
    """The text ends in the middle, or is no JSON from there on: `rest`, of the last element."""

    def __init__(self, rest: str) -> None:
        super().__init__("the text ends, or is no JSON any more, in the middle of its list of jobs")
        self.rest = rest


class Incomplete(ValueError):
    """The text is whole, and says that not all jobs are in it."""


class _Text(Protocol):
    def read(self, size: int, /) -> str: ...


def jobs(text: _Text) -> Iterator[object]:
    """The elements; NoJobs before the first of them, CutShort or Incomplete after the last."""
    reader = _Reader(text)
    if reader.peek() == "[":
        yield from reader.elements()
        return
    reader.expect("{")
    found, errors = False, None
    while reader.peek() != "}":
        key = reader.value()
        reader.expect(":")
        if key == "jobs" and reader.peek() == "[":
            found = True
            yield from reader.elements()
        else:
            value = reader.value()
            errors = value if key == "errors" else errors
        if reader.peek() == ",":
            reader.expect(",")
    if errors:
        raise Incomplete(json.dumps(errors)[:500])
    if not found:
        raise NoJobs("it has no list of jobs")


class _Reader:
    def __init__(self, text: _Text) -> None:
        self._source = text
        self._decoder = json.JSONDecoder(strict=False)  # names hold what users typed
        self._text = ""
        self._at = 0
        self._began = False  # some element was read: what is wrong now is a cut

    def elements(self) -> Iterator[object]:
        self.expect("[")
        self._began = True
        while self.peek() != "]":
            yield self.value()
            if self.peek() == ",":
                self.expect(",")
        self.expect("]")

    def value(self) -> object:
        if self.peek() == "":
            raise self._cut()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                if self._more():
                    continue
                raise self._cut() from error
            except (RecursionError, ValueError) as error:
                # Lists in lists without end, and numbers that no computer counts with.
                raise self._cut() from error
            if end == len(self._text) and self._more():
                continue  # a number may go on
            self._at = end
            return value

    def peek(self) -> str:
        """The next sign that is no blank, "" at the end."""
        while True:
            while self._at < len(self._text) and self._text[self._at].isspace():
                self._at += 1
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def expect(self, sign: str) -> None:
        if self.peek() != sign:
            raise self._cut()
        self._at += 1

    def _more(self) -> bool:
        if len(self._text) - self._at > _LONGEST:
            return False
        part = self._source.read(_PART)
        self._text = self._text[self._at :] + part
        self._at = 0
        return bool(part)

    def _cut(self) -> ValueError:
        rest = self._text[self._at : self._at + 100_000]
        return CutShort(rest) if self._began else NoJobs(f"it begins with {rest[:80]!r}")
