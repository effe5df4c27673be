"""Metrics as they are drawn: a row for each place on the axis of time."""

from collections.abc import Iterable
from dataclasses import dataclass

from gateway.core.training.sums import Point


@dataclass(frozen=True, slots=True)
class Row:
    """`at` is the end of what it tells of, in seconds since 1970; `step_seconds` the mean time of
    a step. What the script did not tell is None."""

    at: float
    restart: int
    step: int
    loss: float | None
    step_seconds: float | None
    tokens_per_second: float | None
    peak_bytes: int | None


def rows(points: Iterable[Point]) -> list[Row]:
    """Points in the order of time, of each restart."""
    found: list[Row] = []
    before: dict[int, Point] = {}
    for point in points:
        found.append(_row(point, before.get(point.restart)))
        before[point.restart] = point
    return found


def recent_rate(points: Iterable[Point], *, places: int = 10) -> float | None:
    """Tokens a second over the last places: what it does now."""
    rates = [row.tokens_per_second for row in rows(points)[-places:]]
    known = [rate for rate in rates if rate is not None]
    return sum(known) / len(known) if known else None


def _row(point: Point, before: Point | None) -> Row:
    seconds = point.last_at - (before.last_at if before else point.first_at)
    steps = point.last_step - (before.last_step if before else point.first_step)
    tokens: float = point.tokens
    if before is None:  # what its first line counted had begun before it
        tokens = point.tokens * (point.lines - 1) / point.lines
    step_seconds = point.seconds / point.timed if point.timed else None
    if step_seconds is None and steps > 0 and seconds > 0:
        step_seconds = seconds / steps
    return Row(
        at=point.last_at,
        restart=point.restart,
        step=point.last_step,
        loss=point.loss / point.losses if point.losses else None,
        step_seconds=step_seconds,
        tokens_per_second=tokens / seconds if point.tokens and seconds > 0 else None,
        peak_bytes=point.peak_bytes or None,
    )
