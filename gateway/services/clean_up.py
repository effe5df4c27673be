"""Forget what nothing looks at any more. Jobs, runs and their history are kept."""

from datetime import datetime, timedelta

from gateway.store import signins, training
from gateway.store.uow import Begin

# Far longer than the throttle looks back.
KEEP_FAILURES = timedelta(days=2)
# Nobody can use an ended session, nor see it; its address and agent are a person's data.
KEEP_SESSIONS = timedelta(days=30)

# A card's minutes are by far the most rows; the steps, the events and the goodput's marks stay.
KEEP_TELEMETRY = timedelta(days=180)


def clean_up(*, begin: Begin, now: datetime) -> None:
    """Drop old sign-in failures, ended sessions, old telemetry. Safe to run at any time."""
    with begin() as session:
        signins.drop_old_failures(session, before=now - KEEP_FAILURES)
        signins.drop_old_sessions(session, before=now - KEEP_SESSIONS)
        training.forget_minutes(session, before=now - KEEP_TELEMETRY)
