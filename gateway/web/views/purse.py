"""The group and its credit in the head of each page."""

from dataclasses import dataclass
from typing import Any

from flask import current_app, url_for

from gateway.store.queries import costs
from gateway.store.queries.costs import Credit
from gateway.web.access import viewer_or_none
from gateway.web.deps import deps

GROUP_PAGE = "group.show"


@dataclass(frozen=True, slots=True)
class Purse:
    """One group's line; `url` is empty where no page shows it."""

    group: str
    money: int
    packages: int
    url: str


def purses() -> list[Purse]:
    """The viewer's groups, their default group first; none on a site that charges nothing."""
    who, have = viewer_or_none(), deps()
    if who is None or not who.groups:
        return []
    with have.read() as session:
        found = costs.credit(session, who.groups, now=have.clock())
        if found is None:
            return []
        first = costs.default_group(session, who.unix_user) if len(who.groups) > 1 else None
    return [_purse(found[name]) for name in sorted(who.groups, key=lambda name: name != first)]


def _purse(credit: Credit) -> Purse:
    return Purse(credit.group, credit.money, credit.packages, group_url(credit.group))


def group_url(group: str) -> str:
    """Empty while the portal has no such page."""
    rules = list(current_app.url_map.iter_rules(GROUP_PAGE)) if _has_page() else []
    if not rules:
        return ""
    named = next((name for rule in rules for name in rule.arguments), "group")
    facts: dict[str, Any] = {named: group}
    return url_for(GROUP_PAGE, **facts)


def _has_page() -> bool:
    return GROUP_PAGE in current_app.view_functions
