"""Signing in and out, and who holds a token. Of a token only its SHA-256 is kept."""

import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from gateway.core.access import Viewer
from gateway.errors import Busy, NotFound, Refused
from gateway.services import passwords
from gateway.store import people, signins
from gateway.store.signins import SessionRow
from gateway.store.uow import Begin, Transaction

log = structlog.get_logger(__name__)

WINDOW = timedelta(minutes=15)
# Few for a login from one address, more from everywhere: who only knows a person's name could
# keep the person out otherwise.
TRIES_PER_LOGIN = 10
TRIES_PER_LOGIN_FROM_EVERYWHERE = 100
TRIES_PER_ADDRESS = 60
LIFE = {"browser": timedelta(days=14), "api": timedelta(days=365)}
TOUCH_EVERY = timedelta(minutes=1)
LONGEST_TEXT = 200


@dataclass(frozen=True, slots=True)
class _Try:
    """A sign-in written down before it was judged."""

    ids: tuple[int, ...]
    person_id: int | None
    password_hash: str | None


@dataclass(frozen=True, slots=True)
class _New:
    """The session to be."""

    token: str
    kind: str
    address: str
    agent: str


def sign_in(
    login: str,
    password: str,
    *,
    kind: str,
    address: str,
    agent: str,
    begin: Begin,
    now: datetime,
) -> str:
    """A new session's token. Refused `bad_credentials`, or `too_many_attempts` with `seconds`.

    Slow on purpose; no transaction is open while the password is judged.
    """
    login = login.strip().lower()[:LONGEST_TEXT]
    this = _write_down(login, address=address, begin=begin, now=now)
    new = _New(secrets.token_urlsafe(32), kind, address[:LONGEST_TEXT], agent[:LONGEST_TEXT])
    seen = this.password_hash
    # Twice, because another sign-in may just have made the stored hash anew.
    for _ in range(2):
        if not passwords.verifies(seen, password) or this.person_id is None:
            break
        rehashed = _rehashed(seen, password)
        with begin() as session:
            person = people.by_id(session, this.person_id)
            stored = people.password_hash(session, login)
            if person is None or person.disabled_at is not None:
                break
            if stored == seen:
                signins.forget_failures(session, ids=this.ids, key=_pair_key(login, address))
                _open(session, person.id, new, rehashed=rehashed, now=now)
                return new.token
        seen = stored
    log.info("sign_in_refused", address=address)
    raise Refused("bad_credentials")


def confirm(viewer: Viewer, password: str, *, address: str, begin: Begin, now: datetime) -> None:
    """That it is this person's password: as a sign-in, throttled with it, but opening nothing."""
    this = _write_down(viewer.login, address=address, begin=begin, now=now)
    if not passwords.verifies(this.password_hash, password):
        raise Refused("wrong_password", field="old")
    with begin() as session:
        signins.forget_failures(session, ids=this.ids, key=_pair_key(viewer.login, address))


def viewer(token: str, *, begin: Begin, now: datetime, read: Begin | None = None) -> Viewer | None:
    """Who holds the token, with the groups that Slurm says are theirs.

    Notes at most once a minute that the session was used, which also moves a browser
    session's end; `read` (a begin that only reads) spares the write lock at other times.
    """
    with (read or begin)() as session:
        held = signins.holder(session, token_hash(token), now=now)
        person = None if held is None else people.by_id(session, held.person_id)
        if held is None or person is None or person.disabled_at is not None:
            return None
        member = people.memberships(session, person.unix_user)
    if now - held.last_seen_at >= TOUCH_EVERY:
        _touch(held, begin=begin, now=now)
    return Viewer(
        person_id=person.id,
        session_id=held.session_id,
        login=person.login,
        unix_user=person.unix_user,
        display_name=person.display_name,
        role=person.role,
        groups=member.groups,
        leads=member.leads,
        locale=person.locale,
        timezone=person.timezone,
    )


def sessions(viewer: Viewer, *, begin: Begin, now: datetime) -> list[SessionRow]:
    """One's own live sessions, the most recently used first."""
    with begin() as session:
        return signins.live(session, viewer.person_id, now=now)


def end_session(session_id: int, *, viewer: Viewer, begin: Begin, now: datetime) -> None:
    """End one of one's own; NotFound for another's."""
    with begin() as session:
        if not signins.end(session, session_id, person_id=viewer.person_id, now=now):
            raise NotFound(f"session {session_id}")


def sign_out(token: str, *, begin: Begin, now: datetime) -> None:
    """End the session of this token. Harmless when it has ended already."""
    with begin() as session:
        signins.end_by_token(session, token_hash(token), now=now)


def token_hash(token: str) -> str:
    """What the database keeps. The token is random, so that a fast hash is enough."""
    return hashlib.sha256(token.encode()).hexdigest()


def _write_down(login: str, *, address: str, begin: Begin, now: datetime) -> _Try:
    """Count the try as failed before it is judged, or a burst would pass the throttle whole."""
    limits = {
        _pair_key(login, address): TRIES_PER_LOGIN,
        _login_key(login): TRIES_PER_LOGIN_FROM_EVERYWHERE,
        _address_key(address): TRIES_PER_ADDRESS,
    }
    with begin() as session:
        signins.drop_old_failures(session, before=now - WINDOW)
        for key, limit in limits.items():
            found = signins.failures(session, key, since=now - WINDOW)
            if found.count >= limit and found.oldest is not None:
                wait = found.oldest + WINDOW - now
                raise Refused("too_many_attempts", seconds=max(1, int(wait.total_seconds())))
        ids = signins.add_failures(session, list(limits), now=now)
        person = people.by_login(session, login)
        hashed = people.password_hash(session, login)
    return _Try(ids, None if person is None else person.id, hashed)


def _open(
    session: Transaction, person_id: int, new: _New, *, rehashed: str | None, now: datetime
) -> None:
    if rehashed is not None:
        people.set_password_hash(session, person_id, rehashed)
    signins.add(
        session,
        person_id=person_id,
        token_hash=token_hash(new.token),
        kind=new.kind,
        address=new.address,
        agent=new.agent,
        now=now,
        expires_at=now + LIFE[new.kind],
    )
    log.info("signed_in", person_id=person_id, kind=new.kind)


def _rehashed(hashed: str | None, password: str) -> str | None:
    if hashed is None or not passwords.is_outdated(hashed):
        return None
    try:
        return passwords.hash_password(password)
    except Refused:  # an old password that is too short by today's rule still lets one in
        return None


def _touch(held: signins.Held, *, begin: Begin, now: datetime) -> None:
    expires_at = now + LIFE["browser"] if held.kind == "browser" else None
    try:
        with begin() as session:
            signins.touch(session, held.session_id, now=now, expires_at=expires_at)
    except Busy:
        # A page that only looks must not fail because a note could not be made.
        log.warning("session_not_touched", session_id=held.session_id)


def _login_key(login: str) -> str:
    # The text typed as a login is now and then a password: it is not kept in the clear.
    return "login:" + hashlib.sha256(login.encode()).hexdigest()


def _pair_key(login: str, address: str) -> str:
    return "pair:" + hashlib.sha256(f"{login}\n{address}".encode()).hexdigest()


def _address_key(address: str) -> str:
    return "address:" + address[:LONGEST_TEXT]
