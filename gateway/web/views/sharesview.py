"""What the page of a group's shares gets."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo
from typing import TYPE_CHECKING

from gateway.core.access import GroupRights, Viewer, group_rights
from gateway.core.contribution import Entry, Kind, Part, Result, Rules, results, scores
from gateway.core.credits import MILLION
from gateway.core.fair_place import Line, Pace, Place, percent, place
from gateway.services import contribution
from gateway.services.poll import POLICY
from gateway.store import contribution as rows
from gateway.store import polls, snapshot
from gateway.web.charts import Chart, Series, chart
from gateway.web.contribution_texts import UNTOUCHED
from gateway.web.deps import deps
from gateway.web.texts import gettext
from gateway.web.views import contributionview, groupview
from gateway.wire.policy import Account

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

_BACK, _AHEAD, _STEP = 180, 180, 6  # days of the picture of decay


@dataclass(frozen=True, slots=True)
class Brought:
    """An entry with what is left of it; `wide` is the percent left of what it gave."""

    part: Part
    kind: Kind
    counts: str
    wide: float


@dataclass(frozen=True, slots=True)
class Beside:
    """A group in the order of all beside it."""

    name: str
    at: int
    own: bool
    line: Line


@dataclass(frozen=True, slots=True)
class SharesPage:
    """`result` None: the last poll knows no such account. `days` are those of the picture."""

    name: str
    rights: GroupRights
    parent: str | None
    result: Result | None
    formula: str
    untouched: str
    brought: list[Brought]
    picture: Chart | None
    days: list[tuple[date, int]]
    today: date
    place: Place | None
    words: str
    beside: list[Beside]
    polled_at: datetime | None


def build(viewer: Viewer, group: str) -> SharesPage:
    """NotFound for strangers."""
    have = deps()
    zone = have.settings.timezone
    today = have.clock().astimezone(zone).date()
    with have.read() as session:
        rights = groupview.rights_in(session, viewer, group)
        held = rows.version(session)
        rules = held.rules if held else Rules()
        entries = contribution.entries(session, rules, zone, group=group)
        accounts = {one.policy.name: one for one in snapshot.accounts(session)}
        found = place(group, _beside(session, group, accounts))
        polled_at = polls.get(session, POLICY).succeeded_at
    own = accounts.get(group)
    result = _result(rules, entries, own, today) if own else None
    parts = result.score.parts if result else ()
    days = _days(rules, entries, group, today)
    return SharesPage(
        name=group,
        rights=rights,
        parent=own.parent if own else None,
        result=result,
        formula=contributionview.formula_words(rules.formula) if rules.formula else "",
        untouched=str(UNTOUCHED[result.untouched]) if result and result.untouched else "",
        brought=_brought(parts, rules),
        picture=_picture(days, today, zone) if parts else None,
        days=days,
        today=today,
        place=found,
        words=_words(found, own.parent if own else None) if found else "",
        beside=_named(found, viewer, group) if found else [],
        polled_at=polled_at,
    )


def _beside(session: "Session", group: str, accounts: dict[str, Account]) -> list[Line]:
    """The accounts below the same parent, the group's own among them."""
    own = accounts.get(group)
    if own is None:
        return []
    return [
        Line(one.account, one.norm_shares, one.effective_usage, one.level)
        for one in snapshot.fair_shares(session)
        if one.account in accounts and accounts[one.account].parent == own.parent
    ]


def _result(rules: Rules, entries: Sequence[Entry], own: Account, today: date) -> Result:
    usable = {own.policy.name: own.usable_qos}
    return results(rules, entries, [own.policy], today, usable=usable)[0]


def _brought(parts: Sequence[Part], rules: Rules) -> list[Brought]:
    """What counts most today comes first."""
    kinds = {kind.key: kind for kind in rules.kinds}
    found = [
        Brought(
            part,
            kinds[part.entry.kind],
            contributionview.fades(kinds[part.entry.kind]),
            round(max(0, part.left) * 100 / part.full, 1) if part.full > 0 else 0.0,
        )
        for part in parts
    ]
    return sorted(found, key=lambda one: -one.part.left)


def _days(
    rules: Rules, entries: Sequence[Entry], group: str, today: date
) -> list[tuple[date, int]]:
    """Points of the group then and, if nothing more is brought, later; today among them."""
    found = []
    for step in range(-_BACK, _AHEAD + 1, _STEP):
        day = today + timedelta(days=step)
        score = scores(rules, entries, day).get(group)
        found.append((day, score.points if score else 0))
    return found


def _picture(days: Sequence[tuple[date, int]], today: date, zone: tzinfo) -> Chart | None:
    values = [
        (datetime.combine(day, time.min, zone).timestamp(), points / MILLION, day)
        for day, points in days
    ]
    was = [(at, y, 0) for at, y, day in values if day <= today]
    later = [(at, y, 0) for at, y, day in values if day >= today]
    return chart(
        [
            Series("main", gettext("points until today"), was),
            Series("ahead", gettext("if nothing more is brought"), later),
        ]
    )


def _words(found: Place, parent: str | None) -> str:
    """Used against entitled, and what follows for the order."""
    if found.of == 1:
        return gettext("No other group stands beside this one.")
    facts = {"used": percent(found.own.used), "entitled": percent(found.own.entitled)}
    facts |= {"whole": gettext("the cluster") if parent is None else parent}  # type: ignore[dict-item]
    match found.pace:
        case Pace.NOTHING:
            return gettext(
                "You have used nothing of %(whole)s lately and are entitled to %(entitled)s %%:"
                " as far as fair share goes, your jobs stand before those of every group that used"
                " something.",
                **facts,
            )
        case Pace.LESS:
            return gettext(
                "You have used %(used)s %% of %(whole)s lately and are entitled to %(entitled)s %%:"
                " your jobs stand before those of groups that used more of their part.",
                **facts,
            )
        case Pace.EVEN:
            return gettext(
                "You have used %(used)s %% of %(whole)s lately: just what you are entitled to.",
                **facts,
            )
        case Pace.MORE:
            return gettext(
                "You have used %(used)s %% of %(whole)s lately and are entitled to %(entitled)s %%:"
                " your jobs stand behind those of groups that used less of their part.",
                **facts,
            )


def _named(found: Place, viewer: Viewer, group: str) -> list[Beside]:
    """The groups that the reader may see, in the order of all."""
    return [
        Beside(line.group, at, line.group == group, line)
        for at, line in found.order
        if _sees(viewer, line.group)
    ]


def _sees(viewer: Viewer, group: str) -> bool:
    return group_rights(viewer, group).see
