"""A job's life as segments of one bar: deferred, waiting, each run. Pure; widths in percent."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from gateway.core.states import JobState, parse_state

THINNEST = 0.6  # percent: a wait of a second is still there to be seen


@dataclass(frozen=True, slots=True)
class Stretch:
    """One run, or a wait for one: what accounting or the queue says of it."""

    submit: datetime
    eligible: datetime | None
    start: datetime | None
    end: datetime | None
    state: str


@dataclass(frozen=True, slots=True)
class Segment:
    kind: str  # deferral, waiting, running, done, failed, again, cancelled
    since: datetime
    until: datetime
    at: float
    wide: float


def ticks(
    moments: Sequence[datetime], stretches: Sequence[Stretch], *, now: datetime
) -> list[float]:
    """Where each moment lies on the bar that `segments` makes of these stretches, in percent."""
    pieces = _all_pieces(stretches, now)
    if not pieces:
        return []
    first, last = min(piece[1] for piece in pieces), max(piece[2] for piece in pieces)
    whole = max((last - first).total_seconds(), 1.0)
    places = ((moment - first).total_seconds() / whole * 100 for moment in moments)
    return [round(min(max(place, 0.0), 100.0), 2) for place in places]


def segments(stretches: Sequence[Stretch], *, now: datetime) -> list[Segment]:
    """The segments in order, from the first submit to the last end, or to now."""
    pieces = _all_pieces(stretches, now)
    if not pieces:
        return []
    first = min(piece[1] for piece in pieces)
    whole = max((max(piece[2] for piece in pieces) - first).total_seconds(), 1.0)
    return [
        Segment(
            kind,
            since,
            until,
            round(min((since - first).total_seconds() / whole * 100, 100 - THINNEST), 2),
            round(max((until - since).total_seconds() / whole * 100, THINNEST), 2),
        )
        for kind, since, until in pieces
    ]


def _all_pieces(
    stretches: Sequence[Stretch], now: datetime
) -> list[tuple[str, datetime, datetime]]:
    pieces: list[tuple[str, datetime, datetime]] = []
    for stretch in sorted(stretches, key=lambda one: one.submit):
        pieces += _pieces(stretch, now)
    return [piece for piece in pieces if piece[2] > piece[1]]


def _pieces(stretch: Stretch, now: datetime) -> list[tuple[str, datetime, datetime]]:
    ended = stretch.end if stretch.end is not None and stretch.end <= now else None
    last = ended or now
    wait_end = min(stretch.start or last, last)
    eligible = min(stretch.eligible, wait_end) if stretch.eligible else wait_end
    pieces = [("deferral", stretch.submit, eligible), ("waiting", eligible, wait_end)]
    if stretch.start is not None:
        pieces.append((_run_kind(stretch.state) if ended else "running", stretch.start, last))
    return pieces


def _run_kind(state: str) -> str:
    known = parse_state(state)[0]
    if known.succeeded:
        return "done"
    if known in {JobState.PREEMPTED, JobState.REQUEUED}:
        return "again"
    if known is JobState.CANCELLED:
        return "cancelled"
    return "failed" if known.is_ended else "running"


@dataclass(frozen=True, slots=True)
class Share:
    """A part of a bar, in percent."""

    kind: str
    at: float
    wide: float


def shares(*parts: tuple[str, float], whole: float | None = None) -> list[Share]:
    """Parts side by side over their sum, or over `whole`."""
    total = whole if whole is not None else sum(size for _, size in parts)
    made, at = [], 0.0
    for kind, size in parts:
        wide = min(size / total * 100, 100 - at) if total > 0 else 0.0
        if wide > 0:
            made.append(Share(kind, round(at, 2), round(wide, 2)))
        at += wide
    return made
