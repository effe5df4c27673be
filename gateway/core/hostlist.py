"""Slurm's hostlist expressions: `a100-[1-2,4]` is a100-1, a100-2 and a100-4."""

import re
from itertools import product

MOST = 100_000
_PART = re.compile(r"\[([^\[\]]*)\]|([^\[\],]+)|,")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?", re.ASCII)


def expand(text: str) -> list[str]:
    """The names, in order. Empty for what is no hostlist, and for more than MOST names."""
    names: list[str] = []
    for word in _words(text):
        choices = [_choices(part) for part in word]
        if any(not choice for choice in choices):
            return []
        if sum(map(len, choices)) > MOST:
            return []
        names += ["".join(parts) for parts in product(*choices)]
        if len(names) > MOST:
            return []
    return names


def _words(text: str) -> list[list[str]]:
    """Split at the commas outside brackets, each word into its fixed and bracketed parts."""
    words: list[list[str]] = [[]]
    for found in _PART.finditer(text):
        if found[0] == ",":
            words.append([])
        else:
            words[-1].append(found[0])
    return [word for word in words if word]


def _choices(part: str) -> list[str]:
    if not part.startswith("["):
        return [part]
    found: list[str] = []
    for piece in part[1:-1].split(","):
        match = _RANGE.fullmatch(piece)
        if match is None:
            return []
        first, last = match[1], match[2] or match[1]
        if int(last) - int(first) > MOST:
            return []
        found += [str(n).zfill(len(first)) for n in range(int(first), int(last) + 1)]
    return found
