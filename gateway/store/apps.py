"""Applications: one's own and those that one was named for, their doors and their guests."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, bindparam, delete, func, or_, select, update
from sqlalchemy.orm import Session

from gateway.store.app_models import App, AppGuest
from gateway.store.models import Job, Person, Submission, table_of
from gateway.store.upsert import insert_ignoring

ON_ITS_WAY = ("queued", "sending", "unknown")
_APP, _GUEST = table_of(App), table_of(AppGuest)
_SUBMISSION, _JOB, _PERSON = table_of(Submission), table_of(Job), table_of(Person)


@dataclass(frozen=True, slots=True)
class Door:
    """Where an application lets one in. `key` is as good as a password."""

    address: str
    port: int
    key: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Guest:
    person_id: int
    login: str
    name: str
    agreed_at: datetime | None


@dataclass(frozen=True, slots=True)
class AppRow:
    """A submission of an application, with its job as far as Slurm has one, and its door once it
    was ready. `folder` is where its job works."""

    id: int
    person_id: int
    owner: str
    owner_name: str
    unix_user: str
    template: str
    name: str
    state: str
    error_code: str | None
    created_at: datetime
    folder: str
    group: str
    partition: str
    qos: str
    asked_minutes: int
    job_id: int | None
    slurm_id: int | None
    job_state: str | None
    active: bool
    reason: str | None
    submit_time: datetime | None
    start_time: datetime | None
    end_time: datetime | None
    time_limit_minutes: int
    gpus: int
    gpu_type: str | None
    nodes: str | None
    output: str | None
    door: Door | None
    ready_at: datetime | None

    @property
    def is_open(self) -> bool:
        """Neither over nor refused: it runs, waits, or is on its way to Slurm."""
        return self.active or (self.job_id is None and self.state in ON_ITS_WAY)


_COLUMNS = (
    _SUBMISSION.c.id,
    _SUBMISSION.c.person_id,
    _PERSON.c.login.label("owner"),
    _PERSON.c.display_name.label("owner_name"),
    _PERSON.c.unix_user,
    _SUBMISSION.c.template,
    _SUBMISSION.c.state,
    _SUBMISSION.c.error_code,
    _SUBMISSION.c.created_at,
    _SUBMISSION.c.request,
    _SUBMISSION.c.job_id,
    _JOB.c.slurm_id,
    _JOB.c.state.label("job_state"),
    func.coalesce(_JOB.c.active, False).label("active"),
    _JOB.c.reason,
    _JOB.c.submit_time,
    _JOB.c.start_time,
    _JOB.c.end_time,
    _JOB.c.time_limit_minutes,
    _JOB.c.gpus,
    _JOB.c.gpu_type,
    _JOB.c.node_list.label("nodes"),
    _JOB.c.output,
    _APP.c.address,
    _APP.c.port,
    _APP.c.key,
    _APP.c.ready_at,
)
_ROWS = select(*_COLUMNS).select_from(
    _SUBMISSION.join(_PERSON, _PERSON.c.id == _SUBMISSION.c.person_id)
    .outerjoin(_JOB, _JOB.c.id == _SUBMISSION.c.job_id)
    .outerjoin(_APP, _APP.c.submission_id == _SUBMISSION.c.id)
)
_OPEN = or_(
    _JOB.c.active, and_(_SUBMISSION.c.job_id.is_(None), _SUBMISSION.c.state.in_(ON_ITS_WAY))
)
_NEWEST = (_SUBMISSION.c.created_at.desc(), _SUBMISSION.c.id.desc())
_BY_ID = _ROWS.where(_SUBMISSION.c.id == bindparam("of"))
_OF_JOB = _ROWS.where(_SUBMISSION.c.job_id == bindparam("job"))
# Slurm's ids come again on a cluster that was cleared: the newest that is open has it.
_BY_SLURM_ID = (
    _ROWS.where(
        _JOB.c.slurm_id == bindparam("slurm_id"),
        _JOB.c.cluster == bindparam("cluster"),
    )
    .order_by(_JOB.c.active.desc(), _JOB.c.submit_time.desc())
    .limit(1)
)
_AGREED = select(_GUEST.c.agreed_at).where(
    _GUEST.c.submission_id == bindparam("of"), _GUEST.c.person_id == bindparam("person")
)
_SHARED = (
    _ROWS.join(_GUEST, _GUEST.c.submission_id == _SUBMISSION.c.id)
    .where(_GUEST.c.person_id == bindparam("person"), _OPEN)
    .order_by(*_NEWEST)
    .limit(bindparam("limit"))
)


_ENTERED = _ROWS.where(
    _JOB.c.active,
    _APP.c.key.is_not(None),
    or_(
        _SUBMISSION.c.person_id == bindparam("person"),
        _SUBMISSION.c.id.in_(
            select(_GUEST.c.submission_id).where(_GUEST.c.person_id == bindparam("person"))
        ),
    ),
)


def get(session: Session, submission_id: int) -> AppRow | None:
    return _one(session, _BY_ID, of=submission_id)


def of_job(session: Session, job_id: int) -> AppRow | None:
    return _one(session, _OF_JOB, job=job_id)


def by_slurm_id(session: Session, slurm_id: int, *, cluster: str) -> AppRow | None:
    """The open one of that id, else the last one that had it."""
    return _one(session, _BY_SLURM_ID, slurm_id=slurm_id, cluster=cluster)


def own(
    session: Session,
    person_id: int,
    templates: Sequence[str],
    *,
    open_only: bool = False,
    limit: int = 50,
) -> list[AppRow]:
    """One's own of these templates, the newest first."""
    query = _ROWS.where(_SUBMISSION.c.person_id == person_id, _SUBMISSION.c.template.in_(templates))
    if open_only:
        query = query.where(_OPEN)
    return [_row(one) for one in session.execute(query.order_by(*_NEWEST).limit(limit))]


def shared_with(session: Session, person_id: int, *, limit: int = 50) -> list[AppRow]:
    """Open ones that others have named this person for."""
    return [_row(one) for one in session.execute(_SHARED, {"person": person_id, "limit": limit})]


def entered(session: Session, person_id: int) -> list[AppRow]:
    """Open ones with a door in which this person may have connections."""
    return [_row(one) for one in session.execute(_ENTERED, {"person": person_id})]


def guests(session: Session, submission_id: int) -> list[Guest]:
    query = (
        select(_GUEST.c.person_id, _PERSON.c.login, _PERSON.c.display_name, _GUEST.c.agreed_at)
        .join(_PERSON, _PERSON.c.id == _GUEST.c.person_id)
        .where(_GUEST.c.submission_id == submission_id)
        .order_by(_PERSON.c.login)
    )
    return [Guest(*row) for row in session.execute(query)]


def guest(session: Session, submission_id: int, person_id: int) -> Guest | None:
    return next((one for one in guests(session, submission_id) if one.person_id == person_id), None)


def may_enter(session: Session, row: AppRow, person_id: int) -> bool:
    """Its owner, or somebody named who has agreed to trust the owner."""
    if row.person_id == person_id:
        return True
    return session.scalar(_AGREED, {"of": row.id, "person": person_id}) is not None


def keep_door(session: Session, submission_id: int, door: Door, *, ready_at: datetime) -> None:
    _sure(session, submission_id)
    session.execute(
        update(_APP)
        .where(_APP.c.submission_id == submission_id)
        .values(address=door.address, port=door.port, key=door.key, ready_at=ready_at)
    )


def add_guest(session: Session, submission_id: int, person_id: int, *, now: datetime) -> None:
    _sure(session, submission_id)
    row = {"submission_id": submission_id, "person_id": person_id, "added_at": now}
    session.execute(insert_ignoring(session, _GUEST), row)


def agree(session: Session, submission_id: int, person_id: int, *, now: datetime) -> None:
    session.execute(update(_GUEST).where(*_is(submission_id, person_id)).values(agreed_at=now))


def drop_guest(session: Session, submission_id: int, person_id: int) -> None:
    session.execute(delete(_GUEST).where(*_is(submission_id, person_id)))


def _is(submission_id: int, person_id: int) -> tuple[ColumnElement[bool], ...]:
    return _GUEST.c.submission_id == submission_id, _GUEST.c.person_id == person_id


def _sure(session: Session, submission_id: int) -> None:
    session.execute(insert_ignoring(session, _APP), {"submission_id": submission_id})


def _one(session: Session, query: Select[Any], **given: int | str) -> AppRow | None:
    row = session.execute(query, given).one_or_none()
    return None if row is None else _row(row)


def _row(found: Any) -> AppRow:
    facts = dict(found._mapping)
    asked = facts.pop("request")
    address, port, key = facts.pop("address"), facts.pop("port"), facts.pop("key")
    row = AppRow(
        **facts,
        name=asked["name"],
        folder=asked["working_directory"],
        group=asked["account"],
        partition=asked["partition"],
        qos=asked["qos"],
        asked_minutes=asked["time_limit_minutes"],
        door=Door(address, port, key) if address and port and key else None,
    )
    if row.job_id is not None and row.time_limit_minutes is not None:
        return row
    return replace(
        row,
        time_limit_minutes=row.time_limit_minutes or asked["time_limit_minutes"],
        gpus=row.gpus or asked["nodes"] * asked["gpus_per_node"],
        gpu_type=row.gpu_type or asked["gpu_type"],
    )
