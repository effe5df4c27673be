"""The list of all groups' credit: sorted and searched by the address."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from flask import url_for

from gateway.store.queries import credit_list
from gateway.store.queries.credit_list import GroupLine
from gateway.web.texts import gettext
from gateway.web.views.joblist import Head

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

PAGE = 100
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_KEYS: dict[str, Callable[[GroupLine], object]] = {
    "group": lambda line: line.group,
    "available": lambda line: line.available,
    "held": lambda line: line.held,
    "pending": lambda line: line.pending,
    "overdrawn": lambda line: line.overdrawn,
    "last": lambda line: line.last_charge or _LONG_AGO,
}
_FROM_THE_SMALLEST = {"group", "available"}


@dataclass(frozen=True, slots=True)
class CreditList:
    lines: list[GroupLine]
    heads: list[Head]
    search: str
    all: int
    previous: str | None
    next: str | None
    sums: dict[str, int]
    names: list[str]


def build(session: "Session", args: Mapping[str, str], *, now: datetime) -> CreditList:
    search = args.get("q", "").strip()[:200]
    sort = args.get("sort", "") if args.get("sort", "") in _KEYS else "group"
    turned = args.get("dir") == "turned"
    lines = credit_list.group_lines(session, now=now, search=search)
    lines.sort(key=_KEYS[sort], reverse=(sort not in _FROM_THE_SMALLEST) != turned)  # type: ignore[arg-type]  # each key compares with its own kind
    first = _whole(args.get("from", ""))
    typed = {"q": search, "sort": sort, "dir": "turned" if turned else ""}
    more = first + PAGE < len(lines)
    return CreditList(
        lines=lines[first : first + PAGE],
        heads=_heads(typed, turned),
        search=search,
        all=len(lines),
        previous=_url(typed, start=max(0, first - PAGE)) if first else None,
        next=_url(typed, start=first + PAGE) if more else None,
        sums={
            name: sum(getattr(line, name) for line in lines)
            for name in ("available", "held", "pending", "overdrawn")
        },
        names=[line.group for line in lines][:1000],
    )


def _heads(typed: Mapping[str, str], turned: bool) -> list[Head]:
    words = {
        "group": gettext("Group"),
        "available": gettext("Available"),
        "held": gettext("Held for jobs"),
        "pending": gettext("Pending in review"),
        "overdrawn": gettext("Overdrawn by"),
        "last": gettext("Last charge"),
    }
    heads = [_head(name, word, typed, turned) for name, word in words.items()]
    return [*heads[:5], Head(gettext("Gate")), heads[5]]


def _head(name: str, word: str, typed: Mapping[str, str], turned: bool) -> Head:
    number = name != "group"
    if typed["sort"] != name:
        return Head(word, _url({**typed, "sort": name, "dir": ""}), number=number)
    upward = (name in _FROM_THE_SMALLEST) != turned
    way = "ascending" if upward else "descending"
    again = {**typed, "dir": "" if turned else "turned"}
    return Head(word, _url(again), way, number=number)


def _url(typed: Mapping[str, str], *, start: int = 0) -> str:
    wanted = {name: text for name, text in typed.items() if text}
    if start:
        wanted["from"] = str(start)
    return url_for("credit.groups", **wanted)  # type: ignore[arg-type]


def _whole(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 7 else 0
