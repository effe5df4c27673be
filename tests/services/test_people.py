import threading

import pytest

from gateway.core.access import Role
from gateway.errors import NotFound, Refused
from gateway.services import people, signin
from gateway.store.uow import Begin
from gateway.testing import builders as b


def add(begin: Begin, login: str = "newcomer", **values: str) -> int:
    return people.add(
        login,
        unix_user=values.get("unix_user", "newcomer"),
        display_name=values.get("display_name", "New Comer"),
        role=Role(values.get("role", "researcher")),
        password=values.get("password", b.PASSWORD),
        begin=begin,
        now=b.NOW,
    )


def test_somebody_new_can_sign_in(begin: Begin) -> None:
    add(begin)

    assert signin.sign_in(
        "newcomer", b.PASSWORD, kind="api", address="", agent="", begin=begin, now=b.NOW
    )


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"login": "a b"}, "bad_login"),
        ({"login": "-a"}, "bad_login"),
        ({"login": "a" * 65}, "bad_login"),
        ({"login": "a\n"}, "login_taken_not"),
        ({"login": "ä"}, "bad_login"),
        ({"unix_user": "root"}, "bad_unix_user"),
        ({"unix_user": "a;b"}, "bad_unix_user"),
        ({"unix_user": "a\n"}, "bad_unix_user"),
        ({"unix_user": "Ab"}, "bad_unix_user"),
        ({"unix_user": "a" * 33}, "bad_unix_user"),
        ({"display_name": " "}, "bad_display_name"),
        ({"display_name": "a\x1b[2J"}, "bad_display_name"),
        ({"password": "short"}, "password_too_short"),
        ({"password": "x" * 201}, "password_too_long"),
    ],
)
def test_what_is_not_on_the_allow_list_is_refused(
    begin: Begin, values: dict[str, str], code: str
) -> None:
    if code == "login_taken_not":  # white space around a login is no part of it
        assert add(begin, **values)
        return

    with pytest.raises(Refused) as refused:
        add(begin, **values)

    assert refused.value.code == code


def test_a_login_and_a_unix_account_belong_to_one_person(begin: Begin) -> None:
    add(begin)

    with pytest.raises(Refused, match="login_taken"):
        add(begin, unix_user="other")
    with pytest.raises(Refused, match="unix_user_taken"):
        add(begin, "other")


def test_of_two_who_add_the_same_login_one_succeeds(begin: Begin) -> None:
    """Threads on two connections."""
    outcomes: list[str] = []

    def attempt() -> None:
        try:
            outcomes.append(str(add(begin)))
        except Refused as refused:
            outcomes.append(refused.code)

    threads = [threading.Thread(target=attempt) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert outcomes.count("login_taken") == 1


def test_the_last_administrator_stays(begin: Begin) -> None:
    b.add_person(begin, "admin", role="administrator")

    with pytest.raises(Refused, match="last_administrator"):
        people.set_role("admin", Role.RESEARCHER, begin=begin)
    with pytest.raises(Refused, match="last_administrator"):
        people.disable("admin", begin=begin, now=b.NOW)
    b.add_person(begin, "second", role="administrator")

    people.disable("admin", begin=begin, now=b.NOW)


def test_a_disabled_person_can_be_let_in_again(begin: Begin) -> None:
    add(begin)
    people.disable("newcomer", begin=begin, now=b.NOW)
    with pytest.raises(Refused, match="person_disabled"):
        people.new_token("newcomer", name="laptop", begin=begin, now=b.NOW)

    people.enable("newcomer", begin=begin)
    token = people.new_token("newcomer", name="laptop", begin=begin, now=b.NOW)
    viewer = signin.viewer(token, begin=begin, now=b.NOW)

    assert viewer is not None
    assert signin.sessions(viewer, begin=begin, now=b.NOW)[0].agent == "laptop"


def test_preferences_are_the_viewers(begin: Begin) -> None:
    person_id = add(begin)
    token = people.new_token("newcomer", name="laptop", begin=begin, now=b.NOW)

    people.set_preferences(person_id, locale="zh", timezone="Asia/Shanghai", begin=begin)
    viewer = signin.viewer(token, begin=begin, now=b.NOW)

    assert viewer is not None
    assert (viewer.locale, viewer.timezone) == ("zh", "Asia/Shanghai")


def test_nobody_unknown_is_changed(begin: Begin) -> None:
    with pytest.raises(NotFound):
        people.set_password("nobody", b.PASSWORD, begin=begin, now=b.NOW)
