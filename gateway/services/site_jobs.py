"""Jobs of the portal itself: sent as a person, collected once, handed to their kind.

A kind's script writes one JSON object to `<working folder>/.sluice/site/<job>.json`. Both halves
may be killed anywhere and run again: the row is reserved before the submission is made, whose form
key finds it again, and who closes the row hands its result on in the same transaction.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any

from gateway.brokerclient.port import Broker
from gateway.core.access import Viewer
from gateway.core.ask import Ask
from gateway.core.environments import Environment
from gateway.core.states import JobState, parse_state
from gateway.errors import (
    BrokerRefused,
    BrokerSilent,
    BrokerUnreachable,
    GatewayError,
    Refused,
)
from gateway.services import submit
from gateway.services.templates import Catalogue
from gateway.store import people, submissions
from gateway.store import site_jobs as store
from gateway.store.site_jobs import Collected, SiteJobRow
from gateway.store.uow import Begin

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

FOLDER = ".sluice/site"
MOST_OPEN = 20
MOST_BYTES = 256 * 1024
_A_TURN = 50
# A network file system may show a file to another host only after a while.
_PATIENCE = timedelta(minutes=2)
# A sender that died before it had made the submission.
_ABANDONED = timedelta(minutes=10)
_NEVER = frozenset({"refused", "withdrawn"})
_TELLS = frozenset({JobState.COMPLETED, JobState.FAILED})


class BadResult(GatewayError):
    """A result that is not what its kind writes: it is refused whole."""

    code = "site_job_bad_result"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a job of the portal ended. `code` None: `result` is what it wrote."""

    code: str | None
    result: dict[str, Any] = field(default_factory=dict)


# Runs in the transaction that closes the row; raises BadResult to refuse what it was given.
Finish = Callable[["Session", SiteJobRow, Outcome, datetime], None]


@dataclass(frozen=True, slots=True)
class Desk:
    """What it takes to send one. `service_login` is as whom: empty where the site has none."""

    begin: Begin
    read: Begin
    broker: Broker
    catalogue: Catalogue
    cluster: str
    zone: tzinfo = UTC
    service_login: str = ""


def sender(desk: Desk, viewer: Viewer | None = None) -> Viewer:
    """As whom such jobs run: the site's service person, else whoever asks. Refused
    `service_login_missing` where there is neither."""
    if desk.service_login:
        with desk.read() as session:
            person = people.by_login(session, desk.service_login)
            found = None if person is None else viewer_of(session, person.id)
        if found is not None:
            return found
        raise Refused("service_login_unknown", login=desk.service_login)
    if viewer is None:
        raise Refused("service_login_missing")
    return viewer


def viewer_of(session: "Session", person_id: int) -> Viewer | None:
    """The person as somebody who is signed in; None: disabled or not there."""
    person = people.by_id(session, person_id)
    if person is None or person.disabled_at is not None:
        return None
    member = people.memberships(session, person.unix_user)
    return Viewer(
        person.id,
        0,
        person.login,
        person.unix_user,
        person.display_name,
        person.role,
        member.groups,
        member.leads,
    )


def is_known(session: "Session", person_id: int, form_key: str) -> bool:
    """Whether this was sent once, or tried."""
    return store.by_form_key(session, person_id=person_id, form_key=form_key) is not None


def start(
    kind: str,
    subject: str,
    ask: Ask,
    *,
    form_key: str,
    viewer: Viewer,
    desk: Desk,
    now: datetime,
    environments: Sequence[Environment] = (),
    facts: dict[str, Any] | None = None,
    on_nodes: str | None = None,
) -> int:
    """Send it as `viewer` (see `sender`): the site job's id, the same one for the same `form_key`.
    `facts` come back to the kind's `finish`; `on_nodes` are the names that it must have.

    Raises Refused `site_job_open` while one of the kind and subject is open, `site_jobs_full` past
    `MOST_OPEN`, and whatever `submit` raises; then the row says why it failed.
    """
    with desk.begin() as session:
        row = _reserve(
            session,
            kind=kind,
            subject=subject,
            form_key=form_key,
            person_id=viewer.person_id,
            facts=facts or {},
            now=now,
        )
    if row.state == "open" and row.submission_id is None:
        _send(row.id, ask, form_key, viewer, on_nodes, desk=desk, given=environments, now=now)
    return row.id


def _send(
    site_job_id: int,
    ask: Ask,
    form_key: str,
    viewer: Viewer,
    on_nodes: str | None,
    *,
    desk: Desk,
    given: Sequence[Environment],
    now: datetime,
) -> None:
    try:
        submission_id = submit.submit(
            ask,
            form_key=form_key,
            viewer=viewer,
            begin=desk.begin,
            read=desk.read,
            broker=desk.broker,
            catalogue=desk.catalogue,
            environments=given,
            now=now,
            cluster=desk.cluster,
            zone=desk.zone,
            on_nodes=on_nodes,
        )
    except (submit.InvalidAsk, Refused, BrokerRefused) as no:
        code = no.problems[0].code if isinstance(no, submit.InvalidAsk) else no.code
        with desk.begin() as session:
            store.finish(session, site_job_id, state="failed", code=code, result=None, now=now)
        raise
    with desk.begin() as session:
        store.linked(session, site_job_id, submission_id)


def _reserve(
    session: "Session",
    *,
    kind: str,
    subject: str,
    form_key: str,
    person_id: int,
    facts: dict[str, Any],
    now: datetime,
) -> SiteJobRow:
    before = store.by_form_key(session, person_id=person_id, form_key=form_key)
    if before is not None:
        return before
    if store.open_count(session) >= MOST_OPEN:
        raise Refused("site_jobs_full", most=MOST_OPEN)
    made = store.reserve(
        session,
        kind=kind,
        subject=subject,
        form_key=form_key,
        person_id=person_id,
        facts=facts,
        now=now,
    )
    row = None if made is None else store.get(session, made)
    if row is None:
        raise Refused("site_job_open")
    return row


def collect(
    *, begin: Begin, read: Begin, broker: Broker, kinds: Mapping[str, Finish], now: datetime
) -> int:
    """Close those that are over, each once; how many. A turn ends at the first that the broker
    does not answer: the others would wait as long."""
    with read() as session:
        found = store.to_collect(session, limit=_A_TURN)
    closed = 0
    for one in found:
        try:
            outcome = _outcome(one, begin=begin, broker=broker, now=now)
        except (BrokerUnreachable, BrokerSilent):
            break
        if outcome is not None:
            closed += _close(one.row, outcome, begin=begin, kinds=kinds, now=now)
    return closed


def _close(
    row: SiteJobRow, outcome: Outcome, *, begin: Begin, kinds: Mapping[str, Finish], now: datetime
) -> bool:
    try:
        with begin() as session:
            state = "done" if outcome.code is None else "failed"
            result = outcome.result or None
            mine = store.finish(
                session, row.id, state=state, code=outcome.code, result=result, now=now
            )
            if mine and row.kind in kinds:
                kinds[row.kind](session, row, outcome, now)
            return mine
    except BadResult as bad:
        if outcome.code is not None:
            raise  # a kind that refuses even that there is none
        return _close(row, Outcome(bad.code), begin=begin, kinds=kinds, now=now)


def _outcome(one: Collected, *, begin: Begin, broker: Broker, now: datetime) -> Outcome | None:
    """None: it is not over."""
    if one.row.submission_id is None:
        return _unlinked(one, begin=begin, now=now)
    if one.submission_state in _NEVER and one.slurm_id is None:
        return Outcome(one.error_code or f"site_job_{one.submission_state}")
    if one.slurm_id is None or one.active or one.job_state is None:
        return None
    state, _ = parse_state(one.job_state)
    if not state.is_ended:
        return None
    if state not in _TELLS:
        return Outcome(f"site_job_{state.value.lower()}")
    return _told(one, broker=broker, now=now)


def _unlinked(one: Collected, *, begin: Begin, now: datetime) -> Outcome | None:
    with begin() as session:
        found = submissions.by_form_key(session, person_id=one.row.person_id, form_key=one.form_key)
        if found is not None:
            store.linked(session, one.row.id, found)
    late = now - one.row.created_at > _ABANDONED
    return Outcome("site_job_not_sent") if found is None and late else None


def _told(one: Collected, *, broker: Broker, now: datetime) -> Outcome | None:
    path = f"{one.folder.rstrip('/')}/{FOLDER}/{one.slurm_id}.json"
    try:
        chunk = broker.read_file(path, user=one.user, offset=0, max_bytes=MOST_BYTES)
    except BrokerRefused:
        late = one.end_time is None or now - one.end_time > _PATIENCE
        return Outcome("site_job_no_result") if late else None
    if chunk.size > MOST_BYTES:
        return Outcome(BadResult.code)
    try:
        result = json.loads(chunk.text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return Outcome(BadResult.code)
    return Outcome(None, result) if isinstance(result, dict) else Outcome(BadResult.code)


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is no number of JSON")
