"""What is forgotten, and that nothing else is."""

from datetime import timedelta

from sqlalchemy import select

from gateway.services.clean_up import clean_up
from gateway.store import models as t
from gateway.store import signins
from gateway.testing import builders as b

DAY = timedelta(days=1)


def session_of(begin, person_id, token, *, made, lives):
    with begin() as session:
        return signins.add(
            session,
            person_id=person_id,
            token_hash=token * 64,
            kind="browser",
            address="192.0.2.1",
            agent="tests",
            now=made,
            expires_at=made + lives,
        )


def test_old_failures_and_sessions_go_and_what_may_be_used_stays(begin):
    person_id = b.add_person(begin)
    live = session_of(begin, person_id, "a", made=b.NOW - 300 * DAY, lives=365 * DAY)
    lately = session_of(begin, person_id, "b", made=b.NOW - 40 * DAY, lives=14 * DAY)
    session_of(begin, person_id, "c", made=b.NOW - 50 * DAY, lives=14 * DAY)
    ended = session_of(begin, person_id, "d", made=b.NOW - 40 * DAY, lives=365 * DAY)
    with begin() as session:
        signins.end(session, ended, person_id=person_id, now=b.NOW - 31 * DAY)
        signins.add_failures(session, ["address:old"], now=b.NOW - 3 * DAY)
        signins.add_failures(session, ["address:new"], now=b.NOW - DAY)
    for _ in range(2):
        clean_up(begin=begin, now=b.NOW)
    with begin() as session:
        assert set(session.scalars(select(t.SignIn.id))) == {live, lately}
        assert list(session.scalars(select(t.SignInFailure.key))) == ["address:new"]
