"""What of money needs an administrator: for the work list of the first admin page."""

from typing import TYPE_CHECKING

from gateway.core.months import month_of
from gateway.store.queries import close, credit_list, group_credit
from gateway.web.deps import deps
from gateway.web.notice_texts import notice_text
from gateway.web.views import adminpolicy
from gateway.web.views.attention import Money

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

_MOST_OPEN = 24


def needs(session: "Session") -> Money:
    number, decided = credit_list.waiting(session)
    told = group_credit.notices(session, None)
    return Money(
        in_review=number,
        decided=decided,
        shut=credit_list.shut(session),
        open_months=len(open_months(session)),
        notices=tuple(
            notice_text(one.kind, one.facts) for one in told if one.kind not in adminpolicy.KINDS
        ),
    )


def open_months(session: "Session") -> list[str]:
    """Months that are over and not closed since charging began, the newest first, two years at
    most."""
    zone = deps().settings.timezone
    began = close.charging_began(session)
    if began is None:
        return []
    first, closed = month_of(began, zone), {month for month, _ in close.closed_months(session)}
    this = month_of(deps().clock(), zone)
    found, year, month = [], int(this[:4]), int(this[5:])
    for _ in range(_MOST_OPEN):
        year, month = (year, month - 1) if month > 1 else (year - 1, 12)
        name = f"{year:04d}-{month:02d}"
        if name < first:
            break
        if name not in closed:
            found.append(name)
    return found
