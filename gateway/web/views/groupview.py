"""What the page of a group gets: its credit, the order of use, who uses it, and until when."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from gateway.core.access import GroupRights, Viewer, group_rights
from gateway.core.gate import Why
from gateway.core.months import month_start
from gateway.core.pots import PotKind
from gateway.core.training.stalls import OnStall
from gateway.errors import NotFound
from gateway.store import credit, ledger
from gateway.store.queries import balances, group_credit, spending, training
from gateway.store.queries.balances import Balance, PotRow
from gateway.store.queries.group_credit import GateLine
from gateway.store.queries.spending import JobCost, MemberSpend
from gateway.store.queries.training import RuleRow
from gateway.web.deps import deps
from gateway.web.messages import sentence
from gateway.web.money_texts import GRANT_REASONS, POT_KINDS
from gateway.web.notice_texts import notice_text
from gateway.web.show import plain
from gateway.web.texts import gettext
from gateway.web.training_texts import ON_STALL
from gateway.web.views.burndown import LOOK_BACK_DAYS, Burndown, burndown

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

_MOST_JOBS = 12
HOUR = 3600


@dataclass(frozen=True, slots=True)
class PotView:
    """`seconds` are the card-seconds left of a package, `share` the percent of what was put in."""

    kind: str
    word: str
    resource: str | None
    per_hour: int | None
    left: int
    held: int
    given: int
    starts: datetime
    expires: datetime | None
    later: bool
    seconds: int | None
    share: float | None


@dataclass(frozen=True, slots=True)
class MemberView:
    user: str
    spent: int
    runs: int
    card_seconds: int
    cap: int | None
    share: float
    own: bool


@dataclass(frozen=True, slots=True)
class Own:
    """One's own spend this month, holds included, against one's cap."""

    group: str
    spent: int
    cap: int | None

    @property
    def share(self) -> float | None:
        if self.cap is None:
            return None
        return min(100.0, round(self.spent * 100 / self.cap, 1)) if self.cap else 100.0


@dataclass(frozen=True, slots=True)
class GroupPage:
    name: str
    rights: GroupRights
    have: Balance
    in_packages: int
    overdrawn: int
    gate: str
    shut: bool
    notices: list[str]
    pots: list[PotView]
    burn: Burndown
    members: list[MemberView]
    own: Own | None
    jobs: list[JobCost]
    month: datetime
    on_stall: str
    stall_rule: RuleRow


def rights_in(session: "Session", viewer: Viewer, group: str) -> GroupRights:
    """Raises NotFound for a stranger, and for a group that there is not."""
    rights = group_rights(viewer, group)
    if not rights.see or not group_credit.known(session, group):
        raise NotFound(f"group {group}")
    return rights


def steered(session: "Session", viewer: Viewer, group: str) -> None:
    """The one place that asks whether somebody may steer the group; NotFound for others."""
    if not rights_in(session, viewer, group).steer:
        raise NotFound(f"{viewer.login} does not lead {group}")


def build(viewer: Viewer, group: str) -> GroupPage:
    now, zone = deps().clock(), deps().settings.timezone
    month = month_start(now, zone)
    until = now + timedelta(seconds=1)  # what is posted at this moment belongs to it
    with deps().read() as session:
        rights = rights_in(session, viewer, group)
        have = balances.balance(session, group, now=now)
        since = now - timedelta(days=LOOK_BACK_DAYS)
        flows = group_credit.flows(session, group, since=since, until=until, zone=zone)
        spend = spending.by_member(session, group, since=month, until=until)
        caps = credit.caps(session, group)
        jobs = spending.jobs(session, group, since=since, limit=_MOST_JOBS)
        gate = group_credit.gate(session, group)
        told = group_credit.notices(session, group)
        rule = training.rule(session, group)
        mine = _own(session, viewer, group, caps, since=month) if group in viewer.groups else None
    return GroupPage(
        name=group,
        rights=rights,
        have=have,
        in_packages=in_packages(have, now),
        overdrawn=max(0, -sum(pot.left for pot in have.pots if pot.kind == PotKind.BALANCE)),
        gate=gate_words(gate),
        shut=gate is not None and gate.closed,
        notices=[notice_text(one.kind, one.facts) for one in told],
        pots=[pot_view(pot, now) for pot in have.pots],
        burn=burndown(have, flows, now=now, zone=zone),
        members=members(spend, caps, viewer),
        own=mine,
        jobs=jobs,
        month=month,
        on_stall=str(ON_STALL[OnStall(rule.on_stall)][0]),
        stall_rule=rule,
    )


def in_packages(have: Balance, now: datetime) -> int:
    """What only jobs of one GPU type may use: the head of the page leaves it out as well."""
    return sum(
        pot.left
        for pot in have.pots
        if pot.kind == PotKind.PACKAGE.value and pot.starts <= now
        if pot.expires is None or now < pot.expires
    )


def own(viewer: Viewer) -> list[tuple[Own, Balance, int]]:
    """A person's spend in each of their groups, with what the group has, and in packages."""
    now = deps().clock()
    month = month_start(now, deps().settings.timezone)
    found = []
    with deps().read() as session:
        for group in viewer.groups:
            mine = _own(session, viewer, group, credit.caps(session, group), since=month)
            have = balances.balance(session, group, now=now)
            found.append((mine, have, in_packages(have, now)))
    return found


def pot_view(pot: PotRow, now: datetime) -> PotView:
    kind = PotKind(pot.kind)
    of = pot.left + pot.held
    share = (
        round(max(0, of) * 100 / pot.given, 1)
        if pot.given and kind is not PotKind.BALANCE
        else None
    )
    return PotView(
        kind=pot.kind,
        word=pot_words(pot.kind, pot.reason, pot.note),
        resource=pot.resource,
        per_hour=pot.per_hour,
        left=pot.left,
        held=pot.held,
        given=pot.given,
        starts=pot.starts,
        expires=pot.expires,
        later=pot.starts > now,
        seconds=pot.left * HOUR // pot.per_hour if pot.per_hour else None,
        share=min(100.0, share) if share is not None else None,
    )


def pot_words(kind: str, reason: str, note: str = "") -> str:
    """`Grant: project`, with the note that came with it."""
    word = str(POT_KINDS[PotKind(kind)])
    match PotKind(kind):
        case PotKind.BALANCE:
            return word
        case PotKind.LOAN:
            return gettext("Loan from %(group)s", group=plain(reason))
        case PotKind.PACKAGE:
            return gettext("Package %(name)s", name=plain(reason))
        case PotKind.GRANT:
            named = str(GRANT_REASONS.get(reason, plain(reason)))
            return gettext("Grant: %(reason)s", reason=named) + (
                f" · {plain(note)}" if note else ""
            )


def gate_words(gate: GateLine | None) -> str:
    """What Slurm lets the group do, in words."""
    if gate is not None and not gate.closed and gate.reason != Why.OPEN:
        return gettext("Open, since the gate only watches. It would be shut: no credit is left.")
    if gate is None or not gate.closed:
        return gettext("Open: new jobs are accepted.")
    words = gettext("Shut: no credit is left, so Slurm accepts no new jobs of this group.")
    if gate.error_code:
        words += " " + gettext("Slurm has not taken it yet: %(why)s", why=sentence(gate.error_code))
    return words


def members(spend: list[MemberSpend], caps: Mapping[str, int], viewer: Viewer) -> list[MemberView]:
    """Who spent something this month, or has a cap; who spent most comes first."""
    most = max((row.spent for row in spend), default=0) or 1
    found = [
        MemberView(
            row.user,
            row.spent,
            row.runs,
            row.card_seconds,
            caps.get(row.user),
            round(max(0, row.spent) * 100 / most, 1),
            row.user == viewer.unix_user,
        )
        for row in spend
    ]
    there = {row.user for row in spend}
    idle = sorted(set(caps) - there)
    return found + [
        MemberView(user, 0, 0, 0, caps[user], 0.0, user == viewer.unix_user) for user in idle
    ]


def _own(
    session: "Session", viewer: Viewer, group: str, caps: Mapping[str, int], *, since: datetime
) -> Own:
    spent = ledger.spent(session, group, viewer.unix_user, since=since)
    return Own(group, spent, caps.get(viewer.unix_user))
