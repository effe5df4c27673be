"""Past use of cards as one person may see it: the way from the history to a page, a CSV or the API.

Figures of too few other people are not there: the rule is core.wait_sight's. Definitions:
docs/engineering/waits.md.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from gateway.core.access import Permission, Viewer
from gateway.core.months import days, midnight, month_of
from gateway.core.usage_figures import (
    DIMENSIONS,
    By,
    Cards,
    CreditSeen,
    LimitBin,
    Limits,
    LimitWait,
    Use,
    cards_by_day,
    in_order,
)
from gateway.core.wait_figures import UNKNOWN, Dimension, Question
from gateway.core.wait_sight import Shown, Sight, shown, shown_parts
from gateway.services.poll import cards_of
from gateway.services.waits import parts_of
from gateway.store import capacity, snapshot
from gateway.store.queries import card_use, group_spend
from gateway.store.queries.card_use import Measured
from gateway.store.queries.group_spend import Spend

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from gateway.history.stats.columns import Part

ALL_CREDIT = CreditSeen(all_groups=True)
_APART = "\0"  # in no name
_NOTHING = Use()


def credit_seen(viewer: Viewer) -> CreditSeen:
    """As core.access.group_rights has it."""
    return CreditSeen(
        all_groups=viewer.may(Permission.SEE_ALL_CREDIT),
        groups=tuple(sorted({*viewer.groups, *viewer.leads})),
    )


class PastUse:
    """What was used, as one person may see it; everything where `sight.all`."""

    def __init__(self, parts: "Sequence[Part]", sight: Sight, credit: CreditSeen) -> None:
        self._parts, self.sight, self._credit = parts, sight, credit

    def total(self, question: Question) -> Use | None:
        """Of all runs together; None: of too few people."""
        asked = self.sight.asked(question)
        if asked is None:
            return None
        found = next(iter(self._use(asked, ())), _NOTHING)
        return found if self.sight.sees(found) else None

    def first(self, question: Question) -> datetime | None:
        """When the first run began that the question is about; None: there is none."""
        from gateway.history.stats import used  # noqa: PLC0415

        return used.first(self._parts, question)

    def use(self, question: Question, by: Sequence[By]) -> Shown[Use]:
        """By one or two, and how many rows are hidden for standing for too few people."""
        if By.USER in by and not self.sight.all:
            return Shown(tuple(self._persons(question, by)))
        asked = self.sight.asked(question)
        return Shown(()) if asked is None else self._shown(asked, by, self._use(asked, by))

    def use_and_total(self, question: Question, by: Sequence[By]) -> tuple[Shown[Use], Use | None]:
        """`use` and `total`, in one look at the history where that is possible."""
        from gateway.history.stats import used  # noqa: PLC0415

        asked = self.sight.asked(question)
        if asked is None or (By.USER in by and not self.sight.all):
            return self.use(question, by), self.total(question)
        rows, total = used.use_and_total(self._parts, asked, by, credit=self._credit)
        return self._shown(asked, by, rows), total if self.sight.sees(total) else None

    def _shown(self, asked: Question, by: Sequence[By], rows: list[Use]) -> Shown[Use]:
        def together(keys: tuple[str, ...]) -> int:
            if len(by) != 1 or by[0] is By.MONTH:
                named = {_APART.join(row.keys): row.others for row in rows}
                return max(named[key] for key in keys)  # they may be the same people
            return sum(one.others for one in self._use(_among(asked, by[0], keys), ()))

        found = shown([(_APART.join(row.keys), row) for row in rows], self.sight, together)
        return Shown(tuple(row for _, row in found.rows), found.hidden)

    def limits(self, question: Question) -> Shown[Limits]:
        """By group."""
        asked = self.sight.asked(question)
        rows = [] if asked is None else self._limits(asked, by_group=True)

        def together(keys: tuple[str, ...]) -> int:
            assert asked is not None
            among = _among(asked, By.GROUP, keys)
            return sum(one.others for one in self._limits(among, by_group=False))

        found = shown([(row.key or "", row) for row in rows], self.sight, together)
        return Shown(tuple(row for _, row in found.rows), found.hidden)

    def own_limits(self, question: Question, user: str) -> Limits | None:
        """One's own runs, in whichever group; None: there are none."""
        mine = replace(question, only={**question.only, Dimension.USER: (user,)})
        return next(iter(self._limits(mine, by_group=False)), None)

    def limit_bins(self, question: Question) -> Shown[LimitBin]:
        """How much of their limits runs used: bins from none to all of it."""
        from gateway.history.stats import limits  # noqa: PLC0415

        asked = self.sight.asked(question)
        rows = [] if asked is None else limits.limit_bins(self._parts, asked)
        return shown_parts(rows, self.sight)

    def limit_waits(self, question: Question) -> list[LimitWait]:
        """Groups that waited for limits: those that one leads, or all."""
        from gateway.history.stats import limits  # noqa: PLC0415

        if not self.sight.all:
            wanted = question.only.get(Dimension.GROUP, self.sight.groups)
            led = tuple(group for group in self.sight.groups if group in wanted)
            if not led:
                return []
            question = replace(question, only={**question.only, Dimension.GROUP: led})
        return limits.limit_waits(self._parts, question)

    def cards(self, question: Question, session: "Session", *, cluster: str) -> list[Cards]:
        """How busy each type's cards were, day by day. Of the question the period and the GPU types
        count: how busy the cluster is, everybody may know."""
        from gateway.history.stats import card_days  # noqa: PLC0415

        only: dict[Dimension, tuple[str, ...]] = {
            Dimension.CLUSTER: (cluster,),
            Dimension.SOURCE: ("",),
        }
        types = question.only.get(Dimension.GPU_TYPE)
        if types:
            only[Dimension.GPU_TYPE] = types
        used = card_days.by_day(
            self._parts,
            Question(question.now, question.since, question.until, only, zone=question.zone),
        )
        until = min(question.until or question.now, question.now)
        zone = ZoneInfo(question.zone)
        first = midnight(min(one.day for one in used), zone) if used else until
        listed = list(days(question.since or first, until, zone))
        if not listed:
            return []
        counted = capacity.between(session, listed[0][0], listed[-1][0])
        now = cards_of(snapshot.nodes(session))
        found = cards_by_day(used, counted, now, listed)
        return [one for one in found if not types or one.gpu_type in types]

    def _use(self, question: Question, by: Sequence[By]) -> list[Use]:
        from gateway.history.stats import used  # noqa: PLC0415

        return used.use(self._parts, question, by, credit=self._credit)

    def _limits(self, question: Question, *, by_group: bool) -> list[Limits]:
        from gateway.history.stats import limits  # noqa: PLC0415

        return limits.limits(self._parts, question, by_group=by_group)

    def _persons(self, question: Question, by: Sequence[By]) -> list[Use]:
        """Of a leader the members, and oneself."""
        own = replace(question, own_user=self.sight.user, own_groups=self.sight.groups)
        rows: dict[tuple[str, ...], Use] = {}
        for part in self.sight.by_person(own):
            if part is not None:
                rows |= {row.keys: row for row in self._use(part, by)}
        return in_order(rows.values(), by)


@contextmanager
def seen_use(folder: Path, viewer: Viewer, *, least: int) -> Iterator[PastUse]:
    """The history in `folder` as this person may see it; `least` is the setting `waits_k`."""
    yield PastUse(parts_of(folder), Sight.of(viewer, least), credit_seen(viewer))


@contextmanager
def past_use(folder: Path) -> Iterator[PastUse]:
    """The whole history, for who may read its files."""
    yield PastUse(parts_of(folder), Sight(0, all=True, user="", groups=()), ALL_CREDIT)


def spent(
    session: "Session", question: Question, credit: CreditSeen, first: datetime | None = None
) -> list[Spend]:
    """What the ledger says of the period, by group and month, by when it was posted; as the
    statements. `first`: from when on, where the question has no beginning."""
    zone = ZoneInfo(question.zone)
    until = min(question.until or question.now, question.now + timedelta(seconds=1))
    since = question.since or first or until
    months: dict[str, tuple[datetime, datetime]] = {}
    for _, begins, ends in days(since, until, zone):
        name = month_of(begins, zone)
        months[name] = (months.get(name, (begins, ends))[0], ends)
    groups = None if credit.all_groups else credit.groups
    wanted = question.only.get(Dimension.GROUP)
    if wanted is not None:
        groups = tuple(name for name in wanted if groups is None or name in groups)
    named = [(name, *ends) for name, ends in months.items()]
    return group_spend.by_month(session, named, groups)


def measured(session: "Session", question: Question, since: datetime) -> dict[str, Measured]:
    """How busy cards were while training runs told of them, by type."""
    return card_use.measured(session, since, min(question.until or question.now, question.now))


def _among(question: Question, by: By, keys: tuple[str, ...]) -> Question:
    values = tuple("" if key == UNKNOWN else key for key in keys)
    return replace(question, only={**question.only, DIMENSIONS[by]: values})
