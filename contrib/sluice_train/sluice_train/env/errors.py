"""Why something cannot be done, as a sentence for the person and a code for the caller."""

from __future__ import annotations

DATA, FULL, BUSY, SETTING = 65, 73, 75, 78  # as in sysexits.h; 73: it cannot be written


class Unusable(RuntimeError):
    """A sentence for the log, and what the program ends with."""

    def __init__(self, text: str, code: int = SETTING) -> None:
        super().__init__(text)
        self.code = code


class Changed(RuntimeError):
    """A file that is being saved is written to at the same time: try again in a moment."""

    @property
    def last_word(self) -> str:
        """The sentence once nobody tries again."""
        return f"{self} is being written to: save again when that is done"


class Spoiled(Changed):
    """What was written cannot be read back."""

    @property
    def last_word(self) -> str:
        """The sentence once nobody tries again."""
        return f"the snapshot was written and cannot be read back: {self}"
