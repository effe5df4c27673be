"""What a leader sets for a group: caps of members, and what happens at zero."""

from datetime import datetime

from gateway.core.ledger import AtZero
from gateway.errors import Refused
from gateway.store import credit, ledger
from gateway.store.queries import people
from gateway.store.uow import Begin

MOST_WARNING_MINUTES = 7 * 24 * 60


def set_cap(group: str, user: str, per_month: int | None, *, begin: Begin) -> None:
    """The most that a member may spend in a calendar month; None takes the cap away.

    Refused: not_a_member, amount_not_positive. A cap of somebody who left can be taken away.
    """
    if per_month is not None and per_month < 0:
        raise Refused("amount_not_positive", field="amount")
    with begin() as session:
        if per_month is not None and user not in people.members(session, group):
            raise Refused("not_a_member", field="user")
        credit.set_cap(session, group, user, per_month)


def set_rules(
    group: str,
    *,
    at_zero: AtZero,
    overdraft: int,
    warning_minutes: int,
    begin: Begin,
    now: datetime,
) -> None:
    """What running and waiting jobs get when no credit is left. Refused: amount_not_positive,
    not_minutes."""
    if overdraft < 0:
        raise Refused("amount_not_positive", field="overdraft")
    if not 0 <= warning_minutes <= MOST_WARNING_MINUTES:
        raise Refused("not_minutes", field="warning_minutes")
    with begin() as session:
        ledger.lock(session, [group], now=now)
        ledger.set_rules(
            session,
            group,
            at_zero=at_zero.value,
            overdraft=overdraft,
            warning_minutes=warning_minutes,
        )
