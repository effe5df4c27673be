"""How long earlier runs of a template took."""

from sqlalchemy import bindparam, select, text
from sqlalchemy.orm import Session

from gateway.store.models import Job, table_of

NEWEST = 400  # enough for a median, and few enough for a form that people type in
_J = table_of(Job).c
_OF_TEMPLATE = (
    select(_J.user, _J.start_time, _J.end_time)
    .where(
        _J.group_name == bindparam("group"),
        _J.template == bindparam("template"),
        _J.purpose.is_(None),  # a smoke job says nothing of how long the others take
        # As the index has it: what waits and runs is the newest, and would be walked through.
        text("not job.active"),
        _J.state.in_(("COMPLETED", "FAILED", "TIMEOUT", "OUT_OF_MEMORY")),
        _J.start_time.is_not(None),
        _J.end_time.is_not(None),
    )
    .order_by(_J.submit_time.desc())
    .limit(NEWEST)
)


def of_template(session: Session, template: str, *, group: str) -> list[tuple[str, int]]:
    """User, and seconds on the nodes, of the group's newest jobs that ran to an end of their
    own."""
    rows = session.execute(_OF_TEMPLATE, {"group": group, "template": template})
    return [(user, int((end - start).total_seconds())) for user, start, end in rows]
