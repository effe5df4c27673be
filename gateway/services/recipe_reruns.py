"""A recipe is checked by doing it again: sent, and compared when the job is over.

Every step is safe to repeat: a submission is noted once, and judged once.
"""

import json
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from gateway.core import recipe_match
from gateway.core.ask import Ask
from gateway.core.planner.cards import Cards
from gateway.core.recipes import Recipe
from gateway.core.states import JobState, parse_state
from gateway.services import recipe_receipt
from gateway.store import recipe_reruns as store
from gateway.store.queries import job as jobs
from gateway.store.recipe_reruns import Due
from gateway.store.uow import Begin
from gateway.wire import codec

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

# A run folder is read until ten minutes after the end.
TOLD_AFTER = timedelta(minutes=11)


def note(
    submission_id: int,
    recipe_id: int,
    recipe: Recipe,
    ask: Ask,
    *,
    is_check: bool,
    begin: Begin,
    now: datetime,
) -> None:
    """A submission was made from a recipe; a clone that changed something counts for nothing."""
    changed = not recipe_match.is_same_ask(ask, recipe)
    kind = "rerun" if is_check else "clone"
    with begin() as session:
        store.note(session, submission_id, recipe_id, kind=kind, changed=changed, now=now)


def judge_ended(*, begin: Begin, read: Begin, cards: Cards, now: datetime) -> int:
    """Compare what is over with its receipt; how many. May be killed and run again."""
    with read() as session:
        due = store.due(session, ended_before=now - TOLD_AFTER)
    for one in due:
        with begin() as session:
            _judge(session, one, cards=cards, now=now)
    return len(due)


def _judge(session: "Session", one: Due, *, cards: Cards, now: datetime) -> None:
    detail = jobs.job(session, one.job_id) if one.job_id is not None else None
    ended_well = detail is not None and parse_state(detail.row.state)[0] is JobState.COMPLETED
    if detail is None or not ended_well:
        store.finish(session, one.submission_id, state="failed", within=None, match={}, now=now)
        return
    recipe = codec.parse(Recipe, json.loads(one.document))
    measured = recipe_receipt.measure(session, detail, cards=cards, now=now)
    found = recipe_match.match(recipe.receipt, measured)
    store.finish(
        session,
        one.submission_id,
        state="done",
        within=found.within,
        match=codec.dump(found),
        now=now,
    )
