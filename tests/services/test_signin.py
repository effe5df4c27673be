import logging
import threading
from datetime import datetime, timedelta
from typing import Any

import pytest
from argon2 import PasswordHasher
from sqlalchemy import Engine, text

from gateway import logs
from gateway.core.access import Viewer
from gateway.errors import Busy, NotFound, Refused
from gateway.services import passwords, people, signin
from gateway.store import signins, uow
from gateway.store.uow import Begin, make_begin, make_engine
from gateway.testing import builders as b

NOW = b.NOW


def sign_in(begin: Begin, login: str = "member", password: str = b.PASSWORD, **values: Any) -> str:
    facts = {"kind": "browser", "address": "192.0.2.1", "agent": "tests", "now": NOW} | values
    return signin.sign_in(login, password, begin=begin, **facts)


def signed_in(begin: Begin, token: str, now: datetime = NOW) -> Viewer:
    found = signin.viewer(token, begin=begin, now=now)
    assert found is not None
    return found


def test_a_person_signs_in_and_is_known_by_the_token(begin: Begin) -> None:
    person_id = b.add_person(begin)
    b.add_associations(begin, b.association(), b.association(account="vision", is_coordinator=True))

    viewer = signed_in(begin, sign_in(begin, " Member "))

    assert (viewer.person_id, viewer.unix_user) == (person_id, "member")
    assert viewer.groups == ("nlp", "vision")
    assert viewer.leads == ("vision",)


@pytest.mark.parametrize(("login", "password"), [("member", "wrong"), ("nobody", b.PASSWORD)])
def test_a_wrong_password_and_an_unknown_login_look_the_same(
    begin: Begin, login: str, password: str
) -> None:
    b.add_person(begin)

    with pytest.raises(Refused) as refused:
        sign_in(begin, login, password)

    assert (refused.value.code, refused.value.facts) == ("bad_credentials", {})


def test_an_unknown_login_costs_a_whole_password_check(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[str] = []
    real = PasswordHasher.verify

    def counting(self: PasswordHasher, hashed: str, password: str) -> bool:
        checked.append(hashed)
        return real(self, hashed, password)

    monkeypatch.setattr(PasswordHasher, "verify", counting)
    with pytest.raises(Refused):
        sign_in(begin, "nobody")

    assert len(checked) == 1
    assert not passwords.is_outdated(checked[0])


def test_a_weak_old_hash_is_made_anew_at_the_next_sign_in(begin: Begin) -> None:
    b.add_person(begin)
    sign_in(begin)

    with begin() as session:
        hashed = session.scalar(text("select password_hash from person"))

    assert not passwords.is_outdated(str(hashed))
    assert sign_in(begin)


def test_the_eleventh_try_has_to_wait_even_with_the_right_password(begin: Begin) -> None:
    b.add_person(begin)
    for _ in range(signin.TRIES_PER_LOGIN):
        with pytest.raises(Refused, match="bad_credentials"):
            sign_in(begin, password="wrong")

    with pytest.raises(Refused) as refused:
        sign_in(begin)
    later = NOW + signin.WINDOW + timedelta(seconds=1)

    assert refused.value.code == "too_many_attempts"
    assert refused.value.facts == {"seconds": signin.WINDOW.seconds}
    assert sign_in(begin, now=later)


def test_who_knows_a_name_cannot_keep_the_person_out(begin: Begin) -> None:
    b.add_person(begin)
    for _ in range(signin.TRIES_PER_LOGIN + 2):
        with pytest.raises(Refused):
            sign_in(begin, password="wrong", address="203.0.113.9")

    assert sign_in(begin, address="192.0.2.1")
    with pytest.raises(Refused, match="too_many_attempts"):
        sign_in(begin, address="203.0.113.9")


def test_many_addresses_together_cannot_guess_on(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signin, "TRIES_PER_LOGIN_FROM_EVERYWHERE", 3)
    b.add_person(begin)
    for n in range(3):
        with pytest.raises(Refused, match="bad_credentials"):
            sign_in(begin, password="wrong", address=f"192.0.2.{n}")

    with pytest.raises(Refused, match="too_many_attempts"):
        sign_in(begin, address="203.0.113.9")


def test_one_address_cannot_try_many_logins(begin: Begin) -> None:
    with begin() as session:
        signins.add_failures(session, ["address:192.0.2.1"] * signin.TRIES_PER_ADDRESS, now=NOW)

    with pytest.raises(Refused, match="too_many_attempts"):
        sign_in(begin, "somebody")


def test_a_success_forgets_the_failures_of_the_login(begin: Begin) -> None:
    b.add_person(begin)
    for _ in range(3 * signin.TRIES_PER_LOGIN // 2):
        sign_in(begin)

    with begin() as session:
        assert session.scalar(text("select count(*) from sign_in_failure")) == 0


def test_a_burst_at_once_gets_no_more_tries_than_one_after_another(begin: Begin) -> None:
    """Threads, because the throttle must hold between processes too; half a second."""
    b.add_person(begin)
    codes: list[str] = []

    def attempt() -> None:
        try:
            sign_in(begin, password="wrong")
        except Refused as refused:
            codes.append(refused.code)

    threads = [threading.Thread(target=attempt) for _ in range(signin.TRIES_PER_LOGIN + 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    if begin_is_sqlite(begin):
        assert codes.count("bad_credentials") == signin.TRIES_PER_LOGIN
        assert codes.count("too_many_attempts") == 4


def begin_is_sqlite(begin: Begin) -> bool:
    with begin() as session:
        return session.get_bind().dialect.name == "sqlite"


def test_two_sign_ins_at_once_are_two_sessions(begin: Begin) -> None:
    """Threads: both write the same person."""
    b.add_person(begin)
    tokens: list[str] = []
    threads = [threading.Thread(target=lambda: tokens.append(sign_in(begin))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    ids = {signed_in(begin, token).session_id for token in tokens}

    assert len(ids) == 2


def test_the_database_holds_no_token(begin: Begin) -> None:
    b.add_person(begin)
    token = sign_in(begin)

    with begin() as session:
        stored = session.scalar(text("select token_hash from sign_in"))

    assert stored == signin.token_hash(token)
    assert token not in str(stored)


@pytest.mark.parametrize("token", ["", "x", "a" * 5000, "ключ"])
def test_a_made_up_token_is_nobody(begin: Begin, token: str) -> None:
    assert signin.viewer(token, begin=begin, now=NOW) is None


def test_use_moves_the_end_of_a_browser_session_and_idleness_ends_it(begin: Begin) -> None:
    b.add_person(begin)
    token = sign_in(begin)

    used = NOW + timedelta(days=13)
    signed_in(begin, token, used)

    assert signed_in(begin, token, used + timedelta(days=13))
    assert signin.viewer(token, begin=begin, now=used + timedelta(days=28)) is None


def test_an_api_session_lives_long_and_its_end_does_not_move(begin: Begin) -> None:
    b.add_person(begin)
    token = sign_in(begin, kind="api")

    assert signed_in(begin, token, NOW + timedelta(days=364))
    assert signin.viewer(token, begin=begin, now=NOW + timedelta(days=366)) is None


def test_last_seen_is_written_at_most_once_a_minute(begin: Begin, read: Begin) -> None:
    b.add_person(begin)
    token = sign_in(begin)
    viewer = signed_in(begin, token)

    signin.viewer(token, begin=begin, read=read, now=NOW + timedelta(seconds=59))
    before = signin.sessions(viewer, begin=read, now=NOW)[0].last_seen_at
    signin.viewer(token, begin=begin, read=read, now=NOW + timedelta(seconds=61))
    after = signin.sessions(viewer, begin=read, now=NOW)[0].last_seen_at

    assert (before, after) == (NOW, NOW + timedelta(seconds=61))


def test_one_ends_ones_own_sessions_and_not_anothers(begin: Begin) -> None:
    b.add_person(begin)
    b.add_person(begin, "stranger")
    token, other = sign_in(begin), sign_in(begin)
    mine, theirs = signed_in(begin, token), signed_in(begin, sign_in(begin, "stranger"))

    with pytest.raises(NotFound):
        signin.end_session(mine.session_id, viewer=theirs, begin=begin, now=NOW)
    signin.end_session(mine.session_id, viewer=signed_in(begin, other), begin=begin, now=NOW)

    assert signin.viewer(token, begin=begin, now=NOW) is None
    assert len(signin.sessions(mine, begin=begin, now=NOW)) == 1


def test_signing_out_ends_the_session_and_can_be_repeated(begin: Begin) -> None:
    b.add_person(begin)
    token = sign_in(begin)

    signin.sign_out(token, begin=begin, now=NOW)
    signin.sign_out(token, begin=begin, now=NOW)

    assert signin.viewer(token, begin=begin, now=NOW) is None


def test_a_disabled_person_is_out_and_stays_out(begin: Begin) -> None:
    b.add_person(begin)
    token = sign_in(begin)

    people.disable("member", begin=begin, now=NOW)

    assert signin.viewer(token, begin=begin, now=NOW) is None
    with pytest.raises(Refused, match="bad_credentials"):
        sign_in(begin)


def test_a_new_password_ends_the_other_sessions(begin: Begin) -> None:
    b.add_person(begin)
    kept, lost = sign_in(begin), sign_in(begin)
    keep = signed_in(begin, kept).session_id

    people.set_password("member", "another password", begin=begin, now=NOW, keep_session=keep)

    assert signin.viewer(lost, begin=begin, now=NOW) is None
    assert signed_in(begin, kept)
    assert sign_in(begin, password="another password")


def test_no_password_and_no_token_reaches_the_log(
    begin: Begin, capfd: pytest.CaptureFixture[str]
) -> None:
    b.add_person(begin)
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    try:
        logs.configure(level="DEBUG")
        token = sign_in(begin)
        with pytest.raises(Refused):
            sign_in(begin, password="a wrong password")
        signin.viewer(token, begin=begin, now=NOW)
        logged = capfd.readouterr().err
    finally:
        root.handlers = handlers
        root.setLevel(level)

    assert "signed_in" in logged
    for secret in (token, b.PASSWORD, "a wrong password", "argon2"):
        assert secret not in logged


def test_a_page_is_shown_though_a_busy_database_takes_no_note_of_it(
    engine: Engine, begin: Begin, read: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    if engine.dialect.name != "sqlite":
        pytest.skip("PostgreSQL locks rows, not the database")
    b.add_person(begin)
    token = sign_in(begin)
    monkeypatch.setattr(uow, "BUSY_MILLISECONDS", 30)
    other = make_engine(str(engine.url))
    later = NOW + timedelta(minutes=5)
    with begin():
        viewer = signin.viewer(token, begin=make_begin(other), read=read, now=later)
        with pytest.raises(Busy):
            sign_in(make_begin(other))
    other.dispose()

    assert viewer is not None
    assert len(signin.sessions(viewer, begin=read, now=later)) == 1


def test_a_full_disk_refuses_a_sign_in_and_with_room_again_it_works(
    engine: Engine, begin: Begin
) -> None:
    if engine.dialect.name != "sqlite":
        pytest.skip("the bound on pages is SQLite's")
    b.add_person(begin)

    def bound(most: int) -> None:
        with begin() as session:
            session.execute(text(f"pragma max_page_count = {most}"))

    def try_often() -> None:
        for n in range(2_000):
            with begin() as session:
                signins.add_failures(session, [f"address:{n}" + "x" * 500], now=NOW)

    with begin() as session:
        pages = int(session.scalar(text("pragma page_count")) or 0)
    bound(pages)
    with pytest.raises(Busy, match="full"):
        try_often()
    with pytest.raises(Busy, match="full"):
        sign_in(begin, address="y" * 200, agent="z" * 200)
    bound(1_000_000)

    assert sign_in(begin)
