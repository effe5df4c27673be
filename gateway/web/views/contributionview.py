"""What the pages of contribution show: groups with their shares now and by the rules, lines with
what is left of them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from gateway.core.contribution import Counted, Formula, Kind, Part, Result, Rules, Shape
from gateway.core.contribution import part as part_of
from gateway.services.contribution import Preview
from gateway.store.contribution import LineRow, Run
from gateway.store.queries.policy_changes import ChangeLine
from gateway.web.contribution_forms import typed
from gateway.web.contribution_texts import UNTOUCHED
from gateway.web.csvtext import csv_row
from gateway.web.texts import gettext

MOST_DRAWN = 20


@dataclass(frozen=True, slots=True)
class GroupLine:
    """`now` and `new` are shares, None for `parent`; the widths are percents of the most shares."""

    group: str
    points: int
    now: int | None
    new: int | None
    now_wide: float
    new_wide: float
    gained: tuple[str, ...]
    lost: tuple[str, ...]
    untouched: str
    changes: bool

    @property
    def difference(self) -> int | None:
        return self.new - self.now if self.new is not None and self.now is not None else None


@dataclass(frozen=True, slots=True)
class Shown:
    """`drawn` are those that change most, or that have most when nothing changes."""

    day: date
    lines: list[GroupLine]
    drawn: list[GroupLine]
    changing: int
    with_points: int
    drifted: int


@dataclass(frozen=True, slots=True)
class BookLine:
    """A line as it was written. `left` None: another stands for it, or its kind is gone."""

    row: LineRow
    kind: Kind | None
    full: int | None
    left: int | None
    taken_back: bool


@dataclass(frozen=True, slots=True)
class RunLine:
    run: Run
    change: ChangeLine | None
    nightly: bool


def shown(found: Preview) -> Shown:
    most = max(
        (shares or 0 for one in found.results for shares in (one.before.shares, one.after.shares)),
        default=0,
    )
    lines = [_group(one, most or 1) for one in found.results]
    order = sorted(lines, key=lambda one: (-abs(one.difference or 0), -(one.new or 0), one.group))
    return Shown(
        day=found.day,
        lines=lines,
        drawn=order[:MOST_DRAWN],
        changing=len(found.changed),
        with_points=sum(1 for one in lines if one.points),
        drifted=sum(1 for one in found.results if one.untouched == "drifted"),
    )


def book_lines(rows: Iterable[LineRow], rules: Rules, day: date) -> list[BookLine]:
    kinds = {kind.key: kind for kind in rules.kinds}
    return [_book_line(row, kinds.get(row.entry.kind), day) for row in rows]


def csv_lines(lines: Sequence[GroupLine]) -> Iterator[str]:
    """Points as decimals; shares that are `parent` are empty."""
    yield csv_row(["group", "points", "shares_now", "shares_new", "qos_added", "qos_taken"])
    for one in lines:
        yield csv_row(
            [
                one.group,
                typed(one.points),
                "" if one.now is None else one.now,
                "" if one.new is None else one.new,
                " ".join(one.gained),
                " ".join(one.lost),
            ]
        )


def formula_words(formula: Formula) -> str:
    """`100 + 1 × points`."""
    facts = {"base": formula.base, "scale": typed(formula.scale)}
    match formula.shape:
        case Shape.LINEAR:
            words = gettext("%(base)s + %(scale)s × points", **facts)
        case Shape.SQUARE_ROOT:
            words = gettext("%(base)s + %(scale)s × √points", **facts)
        case Shape.CAPPED:
            cap = typed(formula.cap or 0)
            words = gettext(
                "%(base)s + %(scale)s × points, of which %(cap)s at most count", cap=cap, **facts
            )
    return gettext(
        "%(formula)s; at least %(least)s, at most %(most)s",
        formula=words,
        least=formula.least,
        most=formula.most,
    )


def fades(kind: Kind) -> str:
    """How it counts, in words."""
    if kind.counted is Counted.PER_DAY:
        counts = gettext("on each day that it lasts")
    else:
        counts = gettext("once")
    if kind.half_life_days is None:
        return gettext("%(counts)s; it does not fade", counts=counts)
    return gettext(
        "%(counts)s; half of it is left after %(days)s days",
        counts=counts,
        days=kind.half_life_days,
    )


def _group(one: Result, most: int) -> GroupLine:
    before, after = one.before, one.after
    return GroupLine(
        group=before.name,
        points=one.score.points,
        now=before.shares,
        new=after.shares,
        now_wide=_wide(before.shares, most),
        new_wide=_wide(after.shares, most),
        gained=tuple(sorted(set(after.qos) - set(before.qos))),
        lost=tuple(sorted(set(before.qos) - set(after.qos))),
        untouched=str(UNTOUCHED[one.untouched]) if one.untouched else "",
        changes=one.changes,
    )


def _wide(shares: int | None, most: int) -> float:
    return round((shares or 0) * 100 / most, 2)


def _book_line(row: LineRow, kind: Kind | None, day: date) -> BookLine:
    taken_back = not row.entry.amount
    if row.replaced or kind is None or taken_back:
        return BookLine(row, kind, None, None, taken_back)
    found: Part = part_of(kind, row.entry, day)
    return BookLine(row, kind, found.full, found.left, taken_back)
