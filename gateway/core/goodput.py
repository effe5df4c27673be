"""What each charged card-second of a training run was good for.

A run (one stretch on nodes) is cut into spans, each with one use, from its first second to its
last; the charged card-seconds are then shared out by the length of the spans, to the last one.
Times are seconds since 1970, as the run folder has them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

_MICRO = 1_000_000
QUIET_SECONDS = 120.0  # steps further apart than this: the cards are asked what they did


class Use(StrEnum):
    """What time was spent on. Each moment has exactly one.

    USEFUL: steps that had never been made before, with the saves between them, since a run
    without saves would lose more. REPEATED: steps made again after a restart, because what came
    after the checkpoint was lost. STARTING: from the first second on nodes until all ranks met
    and the checkpoint was loaded (`ready`; without it, until the first step is told). IDLE: no
    step for two minutes, and whole minutes in which no card did anything; also what comes after
    the training was over, when the nodes are still held. STALLED: from the last step before the
    stall guard spoke until the next step, or the end: the guard speaks late, and what it waited
    for is lost as well. NOT_MEASURED: nobody told, as by scripts that report nothing.
    """

    USEFUL = "useful"
    REPEATED = "repeated"
    STARTING = "starting"
    IDLE = "idle"
    STALLED = "stalled"
    NOT_MEASURED = "not_measured"


@dataclass(frozen=True, slots=True)
class Mark:
    """So many steps were done at this moment."""

    at: float
    step: int


@dataclass(frozen=True, slots=True)
class RunSigns:
    """What is known of one run. `began`: the batch script's first word. `marks` in order of time,
    the first one `ready` where it was told. `over`: when the training was done, or had saved and
    stopped. `idle`: spans in which no card did anything."""

    start: float
    end: float
    card_seconds: int
    began: float | None = None
    marks: Sequence[Mark] = ()
    stalls: Sequence[float] = ()
    over: float | None = None
    idle: Sequence[tuple[float, float]] = ()


@dataclass(frozen=True, slots=True)
class Goodput:
    """Card-seconds by use; they sum to what was charged. `best` is the highest step so far."""

    parts: Mapping[Use, int]
    best: int | None

    @property
    def total(self) -> int:
        return sum(self.parts.values())

    def share(self, use: Use) -> float:
        """Of the whole, from 0 to 1; 0 where nothing was charged."""
        return self.parts[use] / self.total if self.total else 0.0


@dataclass(frozen=True, slots=True)
class _Span:
    """In whole microseconds. `quiet`: no step in it, so cards that are idle count."""

    since: int
    until: int
    use: Use
    quiet: bool = False


def of_run(run: RunSigns, *, best: int | None = None) -> Goodput:
    """`best` is the highest step that an earlier run reached; None for the first one."""
    start, end = _micro(run.start), max(_micro(run.start), _micro(run.end))
    marks = _steps(run, start, end)
    spans = [span for span in _spans(run, marks, best, start, end) if span.until > span.since]
    spans = _painted(spans, _ranges(run.idle), Use.IDLE)
    spans = _painted(spans, _stalled(run, marks, end), Use.STALLED, everywhere=True)
    steps = [mark.step for mark in run.marks]
    return Goodput(
        _shared(spans, run.card_seconds),
        max([*steps, *([] if best is None else [best])], default=None),
    )


def of_runs(runs: Iterable[RunSigns], *, best: int | None = None) -> list[Goodput]:
    """Of one logical run, from the first to the last: each knows how far the others came."""
    found: list[Goodput] = []
    for run in runs:
        found.append(of_run(run, best=best))
        best = found[-1].best
    return found


def together(parts: Iterable[Goodput]) -> Goodput:
    """The sum of several runs."""
    all_of = list(parts)
    steps = [one.best for one in all_of if one.best is not None]
    return Goodput(
        {use: sum(one.parts[use] for one in all_of) for use in Use}, max(steps, default=None)
    )


def steps_lost(reached: int | None, resumed: int | None) -> int | None:
    """Last step of one run less the step that the next one began with; None where either is not
    known, never below zero."""
    if reached is None or resumed is None:
        return None
    return max(0, reached - resumed)


def _micro(at: float) -> int:
    return round(at * _MICRO)


def _steps(run: RunSigns, start: int, end: int) -> list[tuple[int, int]]:
    """(moment, step) where the step changed: reports of the same step say nothing new."""
    found: list[tuple[int, int]] = []
    for mark in sorted(run.marks, key=lambda one: one.at):
        at = _micro(mark.at)
        if start <= at <= end and (not found or found[-1][1] != mark.step):
            found.append((at, mark.step))
    return found


def _spans(
    run: RunSigns, marks: list[tuple[int, int]], best: int | None, start: int, end: int
) -> list[_Span]:
    if not marks:
        began = start if run.began is None else min(max(_micro(run.began), start), end)
        return [
            _Span(start, began, Use.STARTING),
            _Span(began, end, Use.NOT_MEASURED, quiet=True),
        ]
    spans = [_Span(start, marks[0][0], Use.STARTING)]
    reached = marks[0][1] if best is None else max(best, marks[0][1])
    for before, after in pairwise(marks):
        spans += _between(before, after, reached)
        reached = max(reached, after[1])
    return spans + _tail(run, marks[-1][0], end)


def _between(before: tuple[int, int], after: tuple[int, int], reached: int) -> list[_Span]:
    """From one step to the next that was told; those up to `reached` had been made before."""
    (since, first), (until, last) = before, after
    if last < first:  # it began again within its allocation
        return [_Span(since, until, Use.STARTING)]
    again = max(0, min(last, reached) - first)
    middle = since + (until - since) * again // (last - first)
    quiet = until - since > QUIET_SECONDS * _MICRO
    return [
        _Span(since, middle, Use.REPEATED, quiet),
        _Span(middle, until, Use.USEFUL, quiet),
    ]


def _tail(run: RunSigns, last: int, end: int) -> list[_Span]:
    """After the last step. What is not told is not guessed: a run that was killed may have made
    more steps, or none."""
    if run.over is None:
        return [_Span(last, end, Use.NOT_MEASURED, quiet=True)]
    over = min(max(_micro(run.over), last), end)
    return [_Span(last, over, Use.USEFUL), _Span(over, end, Use.IDLE)]


def _stalled(run: RunSigns, marks: list[tuple[int, int]], end: int) -> list[tuple[int, int]]:
    ranges = []
    first = _micro(run.start if run.began is None else max(run.began, run.start))
    for stall in map(_micro, run.stalls):
        if not _micro(run.start) <= stall <= end:
            continue
        since = max([at for at, _ in marks if at <= stall], default=min(first, stall))
        until = min([at for at, _ in marks if at > stall], default=end)
        ranges.append((since, until))
    return _merged(ranges)


def _ranges(spans: Sequence[tuple[float, float]]) -> list[tuple[int, int]]:
    return _merged([(_micro(since), _micro(until)) for since, until in spans])


def _merged(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for since, until in sorted(ranges):
        if found and since <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], until)
        elif until > since:
            found.append((since, until))
    return found


def _painted(
    spans: list[_Span], ranges: list[tuple[int, int]], use: Use, *, everywhere: bool = False
) -> list[_Span]:
    """The spans with `use` where a range lies over a quiet one. Both are in order and apart, so
    one walk does it: a file may name a thousand of each."""
    found: list[_Span] = []
    place = 0
    for span in spans:
        if not (span.quiet or everywhere):
            found.append(span)
            continue
        while place < len(ranges) and ranges[place][1] <= span.since:
            place += 1
        at, here = span.since, place
        while here < len(ranges) and ranges[here][0] < span.until:
            since, until = max(ranges[here][0], at), min(ranges[here][1], span.until)
            found.append(_Span(at, since, span.use))
            found.append(_Span(since, until, use))
            at, here = until, here + 1
        found.append(_Span(at, span.until, span.use))
    return [span for span in found if span.until > span.since]


def _shared(spans: list[_Span], card_seconds: int) -> dict[Use, int]:
    """By the length of the spans, in whole card-seconds, the largest remainders rounded up."""
    lengths = dict.fromkeys(Use, 0)
    for span in spans:
        lengths[span.use] += span.until - span.since
    whole = sum(lengths.values())
    if not whole:
        return {**dict.fromkeys(Use, 0), Use.NOT_MEASURED: card_seconds}
    parts = {use: card_seconds * length // whole for use, length in lengths.items()}
    rests = sorted(Use, key=lambda use: card_seconds * lengths[use] % whole, reverse=True)
    for use in rests[: card_seconds - sum(parts.values())]:
        parts[use] += 1
    return parts
