"""Numbers of a plan as its page shows them: value, band, formula, source."""

from dataclasses import dataclass

from gateway.core.planner.figures import GB, Figure
from gateway.web.planner_words import SOURCES
from gateway.web.show import duration
from gateway.web.texts import gettext

_TWO_MINUTES = 120


@dataclass(frozen=True, slots=True)
class Number:
    """One number, how it was made and where from. `place` is the pattern of its part."""

    name: str
    value: str
    band: str
    formula: str
    sources: str
    place: int | None = None


def seconds(value: float) -> str:
    """Below two minutes in seconds: a save of 84 s is not one of a minute."""
    if value < _TWO_MINUTES:
        return gettext("%(n)s s", n=f"{value:.3g}")
    return duration(value)


def in_gb(name: str, figure: Figure, *, place: int | None = None) -> Number:
    band = "" if exact(figure) else from_to(gigabytes(figure.low), gigabytes(figure.high))
    value = gettext("%(gb)s GB", gb=gigabytes(figure.value))
    return Number(name, value, band, figure.formula, _sources(figure), place)


def in_time(name: str, figure: Figure) -> Number:
    return row(
        name, figure, seconds(figure.value), from_to(seconds(figure.low), seconds(figure.high))
    )


def row(name: str, figure: Figure, value: str, band: str = "") -> Number:
    return Number(name, value, "" if exact(figure) else band, figure.formula, _sources(figure))


def _sources(figure: Figure) -> str:
    return "; ".join(gettext(SOURCES[one]) for one in figure.sources)


def exact(figure: Figure) -> bool:
    return figure.low == figure.high


def from_to(low: str, high: str) -> str:
    return gettext("%(low)s to %(high)s", low=low, high=high)


def gigabytes(value: float) -> str:
    return f"{value / GB:,.1f}"
