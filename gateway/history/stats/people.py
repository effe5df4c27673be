"""How many people figures are made of, for hiding those of few."""

from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from gateway.core.wait_figures import Question
from gateway.history.stats.columns import Part

if TYPE_CHECKING:
    Numbers = np.ndarray[Any, Any]

_TABLE = 1 << 25  # cells up to which a table is quicker than sorting


class _Set:
    """Different numbers below `size`."""

    def __init__(self, size: int) -> None:
        self._table = np.zeros(size, bool) if size <= _TABLE else None
        self._found: list[Numbers] = []

    def add(self, numbers: "Numbers") -> None:
        if self._table is None:
            self._found.append(np.unique(numbers))
        else:
            self._table[numbers] = True

    def all(self) -> "Numbers":
        if self._table is None:
            return np.unique(np.concatenate([np.zeros(0, np.int64), *self._found]))
        return np.flatnonzero(self._table)


class People:
    """Different users by key, and of all keys together (the last). `others`: without the asker's
    own rows, one that names nobody counting as a person; of the jobs, where there are any: who is
    in the hours alone does not hide whose waits a figure tells."""

    def __init__(self, parts: Sequence[Part], question: Question, keys: int) -> None:
        self._question, self._keys = question, keys
        names = sorted({name for part in parts for name in part.texts["user"]} - {""})
        self._codes = {name: code for code, name in enumerate(names)}
        self._seen = _Set(keys * len(names))
        # Of the jobs, and of the hours.
        self._others = (_Set(keys * len(names)), _Set(keys * len(names)))
        self._nameless = np.zeros((2, keys), np.int64)
        self._lock = Lock()
        self._known: dict[int, tuple[Numbers, Numbers]] = {}  # by part

    def add(
        self,
        part: Part,
        entries: "tuple[Numbers, Numbers, Numbers]",
        *,
        hours: bool = False,
    ) -> None:
        """Key, cell and how many rows. `hours`: rows that may be here twice."""
        key, cell, count = entries
        user, other = self._who(part)
        row_user, row_other, inside = user[cell], other[cell], key < self._keys
        code = key * np.int64(len(self._codes)) + row_user
        named = inside & (row_user >= 0)
        self._seen.add(code[named])
        self._others[int(hours)].add(code[named & row_other])
        nameless = inside & (row_user < 0) & row_other
        found = np.bincount(key[nameless], count[nameless], minlength=self._keys)
        with self._lock:
            self._nameless[int(hours)] += found.astype(np.int64)

    def counts(self) -> "tuple[Numbers, Numbers]":
        """People and others, by key."""
        of_jobs, of_hours = (
            self._by_key(found) + np.append(nameless, nameless.sum())
            for found, nameless in zip(self._others, self._nameless, strict=True)
        )
        return self._by_key(self._seen), np.where(of_jobs > 0, of_jobs, of_hours)

    def lists(self) -> tuple[list[int], list[int]]:
        """The same, as whole numbers."""
        people, others = self.counts()
        return people.tolist(), others.tolist()

    def _who(self, part: Part) -> "tuple[Numbers, Numbers]":
        """By cell the user, -1 where it names nobody, and whether it is not the asker's own."""
        if id(part) not in self._known:
            names = part.texts["user"]
            codes = np.array([self._codes.get(name, -1) for name in names], np.int64)
            self._known[id(part)] = codes[part.cells["user"]], ~self._own(part)
        return self._known[id(part)]

    def _own(self, part: Part) -> "Numbers":
        question = self._question
        users = np.array([bool(t) and t == question.own_user for t in part.texts["user"]], bool)
        groups = np.array([t in question.own_groups for t in part.texts["group"]], bool)
        found: Numbers = users[part.cells["user"]] | groups[part.cells["group"]]
        return found

    def _by_key(self, found: "_Set") -> "Numbers":
        codes = found.all()
        users = max(len(self._codes), 1)
        by_key = np.bincount(codes // users, minlength=self._keys)
        return np.append(by_key, np.unique(codes % users).size)
