"""The head of an HTTP/1 request: read strictly, and written again as the program shall see it."""

from __future__ import annotations

import re
from dataclasses import dataclass

MOST_BYTES = 65_536
KEY, WHO = b"x-sluice-key", b"x-sluice-who"
_LINE = re.compile(rb"([A-Z]{1,20}) (/[\x21-\x7e]*) (HTTP/1\.[01])")
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*?)[ \t]*")
_HOP = (b"connection", b"keep-alive")


class BadHead(Exception):
    """No head that could be passed on; `status` is the answer."""

    def __init__(self, status: int) -> None:
        super().__init__(str(status))
        self.status = status


@dataclass(frozen=True)
class Head:
    """Method, target and version as they came; names of fields in small letters."""

    method: bytes
    target: bytes
    version: bytes
    fields: tuple[tuple[bytes, bytes], ...]

    @property
    def keys(self) -> list[bytes]:
        return [value for name, value in self.fields if name == KEY]

    @property
    def who(self) -> bytes:
        """For whom the portal sends it: `<person>.<session>`; empty for the portal itself."""
        return b"".join(value for name, value in self.fields if name == WHO)

    @property
    def is_upgrade(self) -> bool:
        said = b",".join(value for name, value in self.fields if name == b"connection").lower()
        return b"upgrade" in [word.strip() for word in said.split(b",")]

    def passed_on(self, target: bytes) -> bytes:
        """Without the key and the name. The program is to close after its answer, unless it is an
        upgrade: a second request on the connection would be one that nobody looked at."""
        hop = () if self.is_upgrade else _HOP
        kept = [pair for pair in self.fields if pair[0] not in (KEY, WHO, *hop)]
        if not self.is_upgrade:
            kept.append((b"connection", b"close"))
        lines = [b" ".join((self.method, target, self.version)), *map(b": ".join, kept)]
        return b"\r\n".join(lines) + b"\r\n\r\n"


def parse(raw: bytes) -> Head:
    """`raw` ends before the empty line. BadHead: 400."""
    first, *rest = raw.split(b"\r\n")
    line = _LINE.fullmatch(first)
    fields = [_FIELD.fullmatch(text) for text in rest]
    found = [(field[1].lower(), field[2]) for field in fields if field]
    if not line or len(found) != len(rest):
        raise BadHead(400)
    return Head(line[1], line[2], line[3], tuple(found))
