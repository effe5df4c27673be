"""Figures of waits for programs: one JSON value, with the keys of the definitions."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, tzinfo
from typing import Any

from gateway.core.wait_figures import Figures, Question, Wait
from gateway.core.wait_shapes import Bar, Span

_DIGITS = 6
WORDS = {
    Wait.ELIGIBLE: "wait = start - eligible, of the first run of each job; arrays that throttled"
    " themselves and waits after a requeue are apart",
    Wait.SUBMIT: "wait = start - submit, of every row; nothing is left out",
}


def facts(question: Question, figures: Figures, span: Span, zone: tzinfo) -> dict[str, Any]:
    """The overall figures; times in the zone."""
    return {
        "definition": WORDS[question.wait],
        "timezone": question.zone,
        **of(figures),
        "submitted": _times(span.submitted, zone),
        "ended": _times(span.ended, zone),
    }


def rows(name: str, found: Sequence[tuple[str, Figures]]) -> list[dict[str, Any]]:
    """A row a key, which stands in it twice: by its dimension's name too."""
    return [{"key": key, name: key, **of(figures)} for key, figures in found]


def bars(found: Sequence[Bar]) -> list[dict[str, Any]]:
    """Seconds from low_s on, below high_s."""
    return [asdict(bar) for bar in found]


def of(figures: Figures) -> dict[str, Any]:
    """Whole numbers as such, others with six decimals."""
    found: dict[str, Any] = _plain(asdict(figures))
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, float):
        short = round(value, _DIGITS)
        return int(short) if short.is_integer() else short
    return value


def _times(bounds: tuple[datetime, datetime] | None, zone: tzinfo) -> list[str] | None:
    return [at.astimezone(zone).isoformat() for at in bounds] if bounds else None
