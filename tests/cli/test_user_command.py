import sqlite3
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gateway.cli.db import db
from gateway.cli.user import user
from gateway.services import signin
from gateway.store.uow import make_begin, make_engine
from gateway.testing.builders import PASSWORD


def run(*words: str, stdin: str = "") -> Result:
    return CliRunner().invoke(user, words, input=stdin)


def add(login: str = "admin", *more: str, password: str = PASSWORD) -> Result:
    return run("add", login, *more, "--password-stdin", stdin=password + "\n")


@pytest.fixture(autouse=True)
def ready(home: Path) -> None:
    assert CliRunner().invoke(db, ["upgrade"]).exit_code == 0


def test_the_first_administrator_can_be_added_and_signs_in(home: Path) -> None:
    added = add("admin", "--unix-user", "adm", "--name", "A. D. Min", "--role", "administrator")
    engine = make_engine(f"sqlite:///{home / 'sluice.db'}")
    begin = make_begin(engine)

    from datetime import UTC, datetime

    token = signin.sign_in(
        "admin", PASSWORD, kind="api", address="", agent="", begin=begin, now=datetime.now(UTC)
    )
    engine.dispose()

    assert added.exit_code == 0, added.output
    assert token
    assert run("list").output.splitlines()[-1] == "admin\tadm\tadministrator\tactive\tA. D. Min"


def test_a_password_is_never_an_argument(home: Path) -> None:
    assert run("add", "admin", "--password", PASSWORD).exit_code == 2


def test_the_prompt_asks_twice(home: Path) -> None:
    done = run("add", "admin", stdin=f"{PASSWORD}\n{PASSWORD}\n")

    assert done.exit_code == 0
    assert PASSWORD not in done.output


@pytest.mark.parametrize(
    ("login", "password", "says"),
    [("admin", PASSWORD, "already"), ("A B", PASSWORD, "login"), ("other", "short", "10")],
)
def test_what_is_refused_is_said_in_a_sentence(
    home: Path, login: str, password: str, says: str
) -> None:
    add()

    done = add(login, password=password)

    assert done.exit_code == 1
    assert says in done.output
    assert "Traceback" not in done.output


def test_a_new_token_is_all_that_is_printed_and_is_kept_only_as_a_hash(home: Path) -> None:
    add()

    token = run("token", "admin").output.splitlines()[-1]

    with sqlite3.connect(home / "sluice.db") as connection:
        [(kept,)] = connection.execute("select token_hash from sign_in").fetchall()
    connection.close()
    assert kept == signin.token_hash(token)


def test_role_passwd_disable_enable(home: Path) -> None:
    add("admin", "--role", "administrator")
    add("member")

    assert run("role", "member", "operator").exit_code == 0
    assert run("passwd", "member", "--password-stdin", stdin="a new password\n").exit_code == 0
    assert run("disable", "member").exit_code == 0
    assert "\toperator\tdisabled\t" in run("list").output
    assert run("enable", "member").exit_code == 0
    assert "last administrator" in run("disable", "admin").output
    assert "There is no person" in run("disable", "nobody").output
