"""What ends an application before it can be used."""

from __future__ import annotations

UNUSABLE = 78  # a setting, or something that this node does not have
UNAVAILABLE = 69  # the program did not come up


class Unusable(Exception):
    """Nothing was started, or it cannot be used. The text is for the person."""

    def __init__(self, text: str, code: int = UNUSABLE) -> None:
        super().__init__(text)
        self.code = code
