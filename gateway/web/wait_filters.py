"""Filters of the pages of waits: a query of an address, and the question that it asks."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from flask import url_for
from werkzeug.datastructures import MultiDict

from gateway.core.states import JobState
from gateway.core.wait_figures import (
    GPU_CLASSES,
    LIMIT_CLASSES,
    UNKNOWN,
    Dimension,
    Question,
    Wait,
)
from gateway.errors import Refused
from gateway.web.show import plain
from gateway.web.texts import Lazy, gettext
from gateway.web.texts import lazy_gettext as _l
from gateway.web.wait_texts import DIMENSION_WORDS

PERIODS: dict[str, Lazy] = {
    "7": _l("7 days"),
    "30": _l("30 days"),
    "90": _l("90 days"),
    "365": _l("a year"),
    "all": _l("all"),
}
DEFAULT_PERIOD = "30"
# In the order of the form. Those with a closed list of values have it here.
FILTERS: dict[Dimension, tuple[str, ...] | None] = {
    Dimension.PARTITION: None,
    Dimension.GPU_TYPE: None,
    Dimension.GPU_CLASS: (*(name for name, _, _ in GPU_CLASSES), UNKNOWN),
    Dimension.GROUP: None,
    Dimension.QOS: None,
    Dimension.USER: None,
    Dimension.TEMPLATE: None,
    Dimension.LIMIT_CLASS: (*(name for name, _ in LIMIT_CLASSES), UNKNOWN),
    Dimension.STATE: tuple(state.value for state in JobState),
    Dimension.SOURCE: None,
    Dimension.CLUSTER: None,
}


class UnreadableAddress(Refused):
    """`what` are sentences about what cannot be read."""

    status = 400


Also = Mapping[str, tuple[Lazy, Collection[str]]]  # a name's word and its values
_LONGEST = 200
_MOST_VALUES = 50
_YEARS = range(1970, 2200)


@dataclass(frozen=True, slots=True)
class Asked:
    """`pairs` is the address in good order: what is wrong or a default is not in it."""

    question: Question
    period: str  # a key of PERIODS; empty: from and to
    pairs: tuple[tuple[str, str], ...]
    problems: tuple[str, ...]

    @property
    def query(self) -> dict[str, list[str]]:
        """For `url_for`."""
        found: dict[str, list[str]] = {}
        for name, value in self.pairs:
            found.setdefault(name, []).append(value)
        return found

    def url(self, endpoint: str, **changes: str | Sequence[str] | None) -> str:
        """The same filters on a page, with other values; None takes one away. What is no filter,
        such as an order of rows, is given anew each time."""
        wanted: dict[str, Any] = {**self.query, **changes}
        return url_for(endpoint, **wanted)

    def typed(self, name: str) -> str:
        return next((value for key, value in self.pairs if key == name), "")


def read(
    args: MultiDict[str, str], *, now: datetime, zone: ZoneInfo, also: Also | None = None
) -> Asked:
    """Never raises: what cannot be read is left out, and `problems` say so in words. `also`: what
    else the page reads from its address."""
    problems: list[str] = []
    pairs: list[tuple[str, str]] = []
    only = _only(args, pairs, problems)
    wait = _wait(args, pairs, problems)
    period, since, until = _period(args, pairs, problems, now=now, zone=zone)
    for name, (word, values) in (also or {}).items():
        text = args.get(name, "").strip()
        if text and text not in values:
            problems.append(_unread(str(word), text))
    question = Question(now=now, since=since, until=until, only=only, wait=wait, zone=zone.key)
    return Asked(question, period, tuple(pairs), tuple(problems))


def whole(asked: Asked) -> Asked:
    """For a file, which shows no note beside its figures. Raises UnreadableAddress."""
    if asked.problems:
        raise UnreadableAddress("unreadable_address", what=" ".join(asked.problems))
    return asked


def _only(
    args: MultiDict[str, str], pairs: list[tuple[str, str]], problems: list[str]
) -> dict[Dimension, tuple[str, ...]]:
    only: dict[Dimension, tuple[str, ...]] = {}
    for dimension, closed in FILTERS.items():
        values = dict.fromkeys(text.strip() for text in args.getlist(dimension.value))
        good = [text for text in values if text and _is_good(text, dimension, closed, problems)]
        if len(good) > _MOST_VALUES:
            word = str(DIMENSION_WORDS[dimension])
            problems.append(
                gettext(
                    "%(filter)s: only the first %(n)s values count.", filter=word, n=_MOST_VALUES
                )
            )
            good = good[:_MOST_VALUES]
        if good:
            pairs += [(dimension.value, text) for text in good]
            only[dimension] = tuple("" if text == UNKNOWN else text for text in good)
    return only


def _is_good(
    text: str, dimension: Dimension, closed: tuple[str, ...] | None, problems: list[str]
) -> bool:
    if len(text) <= _LONGEST and "\0" not in text and (closed is None or text in closed):
        return True
    word = str(DIMENSION_WORDS[dimension])
    problems.append(_unread(word, text))
    return False


def _unread(word: str, text: str) -> str:
    shown = plain(text[:60])
    return gettext("%(filter)s: “%(value)s” is not known.", filter=word, value=shown)


def _wait(args: Mapping[str, str], pairs: list[tuple[str, str]], problems: list[str]) -> Wait:
    text = args.get("wait", "").strip()
    if not text:
        return Wait.ELIGIBLE
    if text not in list(Wait):
        problems.append(_unread(gettext("Wait"), text))
        return Wait.ELIGIBLE
    if text != Wait.ELIGIBLE:
        pairs.append(("wait", text))
    return Wait(text)


def _period(
    args: Mapping[str, str],
    pairs: list[tuple[str, str]],
    problems: list[str],
    *,
    now: datetime,
    zone: ZoneInfo,
) -> tuple[str, datetime | None, datetime | None]:
    """Which period, from when, until when. Days are the site's, both ends included."""
    first = _day(args.get("from", ""), gettext("From"), zone, problems)
    last = _day(args.get("to", ""), gettext("To"), zone, problems, after=1)
    if first and last and first >= last:
        problems.append(gettext("The period ends before it begins."))
        first = last = None
    if first or last:
        pairs += [(name, args[name].strip()) for name, at in (("from", first), ("to", last)) if at]
        return "", first, last or now
    period = args.get("period", "").strip() or DEFAULT_PERIOD
    if period not in PERIODS:
        problems.append(_unread(gettext("Period"), period))
        period = DEFAULT_PERIOD
    if period != DEFAULT_PERIOD:
        pairs.append(("period", period))
    if period == "all":
        return period, None, None
    return period, now - timedelta(days=int(period)), now


def _day(
    text: str, word: str, zone: ZoneInfo, problems: list[str], *, after: int = 0
) -> datetime | None:
    if not text.strip():
        return None
    try:
        day = date.fromisoformat(text.strip())
        if day.year not in _YEARS:
            raise ValueError("a slip of the finger; its like before would be off the calendar")
        return datetime.combine(day + timedelta(days=after), time(), zone).astimezone(UTC)
    except ValueError:
        problems.append(_unread(word, text))
        return None
