"""The words of a text for a search: Latin words whole, Chinese in pairs of characters.

Both sides, what is kept and what is looked for, go through here, so that no database's own idea of
a word matters. The words hold letters and digits alone: they are safe in any query.
"""

import re
import unicodedata
from collections.abc import Iterable

MOST_WORDS = 400  # of a text
MOST_ASKED = 12  # of a search
_LONGEST = 40
_LONGEST_TEXT = 20_000
# Han and kana are written without blanks; the others are words between what is no letter or digit.
_HAN = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_RUN = re.compile(f"([{_HAN}]+)|((?:(?![{_HAN}])[^\\W_])+)")


def words(texts: Iterable[str]) -> str:
    """What is kept of these texts: words, blanks between them, each once, in their order."""
    found: dict[str, None] = {}
    for text in texts:
        for chinese, latin in _RUN.findall(_plain(text)):
            # The last character too: no pair begins with it.
            new = [*_pairs(chinese), chinese[-1]] if chinese else [latin[:_LONGEST]]
            found.update(dict.fromkeys(new))
    return " ".join(list(found)[:MOST_WORDS])


def asked(text: str) -> tuple[str, ...]:
    """What must all be found for this search: beginnings of words."""
    found: dict[str, None] = {}
    for chinese, latin in _RUN.findall(_plain(text)):
        new = (_pairs(chinese) or [chinese]) if chinese else [latin[:_LONGEST]]
        found.update(dict.fromkeys(new))
    return tuple(found)[:MOST_ASKED]


def _plain(text: str) -> str:
    """Small letters without accents; full-width forms as plain ones."""
    split = unicodedata.normalize("NFKD", text[:_LONGEST_TEXT]).casefold()
    return "".join(c for c in split if not unicodedata.combining(c))


def _pairs(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(len(run) - 1)]
