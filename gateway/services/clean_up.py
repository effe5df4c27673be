"""Forget what nothing looks at any more."""

from datetime import datetime, timedelta

from gateway.store import signins
from gateway.store.uow import Begin

# Far longer than the throttle looks back.
KEEP_FAILURES = timedelta(days=2)


def clean_up(*, begin: Begin, now: datetime) -> None:
    """Drop old sign-in failures. Safe to run at any time."""
    with begin() as session:
        signins.drop_old_failures(session, before=now - KEEP_FAILURES)
