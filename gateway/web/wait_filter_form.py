"""The filters of the pages of waits as their form shows them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flask import url_for

from gateway.core.wait_figures import Dimension, Wait
from gateway.web.texts import gettext
from gateway.web.wait_filters import DEFAULT_PERIOD, FILTERS, PERIODS, Asked
from gateway.web.wait_texts import DIMENSION_WORDS, WAIT_WORDS, value_word

_CARRIED = ("period", "wait")  # stand beside the form, not in it
_FIRST = 4  # of the form; the rest is folded


@dataclass(frozen=True, slots=True)
class Choice:
    word: str
    url: str
    on: bool = False
    title: str = ""


@dataclass(frozen=True, slots=True)
class Control:
    """One filter of the form: a select where `options` are closed, else a text with proposals.
    `rest`: further values of the same filter, which the form carries."""

    name: str
    word: str
    value: str
    options: tuple[tuple[str, str], ...]
    closed: bool
    rest: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FilterView:
    """What fragments/waits_nav.html shows."""

    action: str
    periods: tuple[Choice, ...]
    waits: tuple[Choice, ...]
    set: tuple[Choice, ...]
    controls: tuple[Control, ...]
    more: tuple[Control, ...]
    more_open: bool
    carried: tuple[tuple[str, str], ...]
    since: str
    until: str
    clear: str | None
    problems: tuple[str, ...]


Known = Mapping[Dimension, Iterable[str]]
_Url = Callable[..., str]


def view(
    asked: Asked,
    endpoint: str,
    known: Known,
    *,
    with_wait: bool = True,
    keep: Mapping[str, str] | None = None,
    **place: Any,
) -> FilterView:
    """`known`: values to propose. `place` are the variables of the endpoint's own path, `keep` what
    else stands in the address and shall stay."""
    more = keep or {}

    def url(**changes: str | Sequence[str] | None) -> str:
        return asked.url(endpoint, **{**place, **more, **changes})

    controls = [_control(asked, one, known.get(one, ())) for one in FILTERS if _has(one, known)]
    folded = controls[_FIRST:]
    at = {"from": None, "to": None}
    set_ = [*_removable(asked, url), *_days(asked, url)]
    return FilterView(
        action=url_for(endpoint, **place),
        periods=tuple(
            Choice(
                str(word),
                url(period=None if key == DEFAULT_PERIOD else key, **at),
                key == asked.period,
            )
            for key, word in PERIODS.items()
        ),
        waits=tuple(
            Choice(
                str(word),
                url(wait=None if key is Wait.ELIGIBLE else key.value),
                key is asked.question.wait,
            )
            for key, word in WAIT_WORDS.items()
        )
        if with_wait
        else (),
        set=tuple(set_),
        controls=tuple(controls[:_FIRST]),
        more=tuple(folded),
        more_open=any(one.value for one in folded) or not asked.period,
        carried=(
            *((name, asked.typed(name)) for name in _CARRIED if asked.typed(name)),
            *more.items(),
        ),
        since=asked.typed("from"),
        until=asked.typed("to"),
        clear=url_for(endpoint, **place) if len(set_) > 1 else None,
        problems=asked.problems,
    )


def _has(dimension: Dimension, known: Known) -> bool:
    """A filter of one value, or of none, is no filter."""
    needs_several = {Dimension.CLUSTER, Dimension.SOURCE}
    return dimension not in needs_several or len(tuple(known.get(dimension, ()))) > 1


def _control(asked: Asked, dimension: Dimension, known: Iterable[str]) -> Control:
    closed = FILTERS[dimension]
    values = [value for name, value in asked.pairs if name == dimension.value]
    options = closed or tuple(dict.fromkeys((*known, *values)))
    return Control(
        name=dimension.value,
        word=str(DIMENSION_WORDS[dimension]),
        value=values[0] if values else "",
        options=tuple((one, value_word(dimension, one)) for one in options),
        closed=closed is not None,
        rest=tuple(values[1:]),
    )


def _removable(asked: Asked, url: _Url) -> Iterable[Choice]:
    title = gettext("Take this filter away")
    for dimension in FILTERS:
        values = [value for name, value in asked.pairs if name == dimension.value]
        for value in values:
            rest = [one for one in values if one != value]
            word = f"{DIMENSION_WORDS[dimension]}: {value_word(dimension, value)}"
            yield Choice(word, url(**{dimension.value: rest or None}), title=title)


def _days(asked: Asked, url: _Url) -> Iterable[Choice]:
    title = gettext("Take this filter away")
    for name, word in (("from", gettext("From")), ("to", gettext("To"))):
        if asked.typed(name):
            yield Choice(f"{word}: {asked.typed(name)}", url(**{name: None}), title=title)
