"""Tests that walk the program: they fail for the page that somebody forgets."""

import ast
import re
from pathlib import Path

import pytest
from flask import Flask, g
from jinja2 import nodes

import gateway
from gateway.cli.common import REFUSALS
from gateway.config import assets
from gateway.core import policy, slurm_errors
from gateway.core.reasons import REASON_KEYS
from gateway.core.states import JobState
from gateway.testing import builders as b
from gateway.web.access import PUBLIC
from gateway.web.app import menu
from gateway.web.event_texts import EVENT_TEXTS
from gateway.web.messages import TEXTS
from gateway.web.reason_texts import REASON_TEXTS
from gateway.web.state_texts import STATE_TEXTS
from tests.web.conftest import Site

TEMPLATES = sorted((assets() / "templates").rglob("*.html"))
PACKAGE = Path(gateway.__file__).parent
# Reached from a page they belong to, not from the menu.
NOT_IN_MENU = {
    "datasets.index",
    "datasets.new",
    "datasets.requests",
    "datasets.show",
    "environments.edit",
    "environments.export",
    "environments.show",
    "results.csv",
    "results.logs",
    "results.show",
    "volumes.days_csv",
    "volumes.index",
    "volumes.library",
    "volumes.show",
    "recipes.compare",
    "recipes.export",
    "recipes.show",
    "recipes.new",
    "admin_volumes.index",
    "admin.people",
    "appgate.away",
    "appgate.down",
    "appgate.gate",
    "apps.show",
    "apps.state",
    "auth.password",
    "auth.sessions",
    "auth.settings",
    "auth.sign_in",
    "contribution.csv",
    "contribution.index",
    "contribution.line",
    "contribution.lines",
    "contribution.rules",
    "credit.campaigns",
    "credit.groups",
    "credit.packages",
    "environments.index",
    "environments.new",
    "forecast_record.csv",
    "forecast_record.index",
    "group.ask_remove",
    "group.budgets",
    "group.me",
    "group.members",
    "group.package",
    "group.shares",
    "group.show",
    "group.statement",
    "group.statement_csv",
    "group.statement_print",
    "group.steer",
    "health.alive",
    "help.home",
    "help.index",
    "jobs.confirm",
    "jobs.download",
    "jobs.output",
    "jobs.script",
    "jobs.show",
    "jobs.state",
    "jobs.training",
    "jobs.training_csv",
    "months.differences_csv",
    "months.index",
    "months.show",
    "library.templates",
    "policy.change",
    "policy.changes",
    "policy.edit",
    "policy.groups",
    "policy.history",
    "policy.index",
    "policy.new",
    "policy.retire",
    "policy.show",
    "prices.compare",
    "prices.index",
    "results.compare",
    "results.compare_csv",
    "review.case",
    "review.charge",
    "review.index",
    "search.find",
    "snapshots.index",
    "snapshots.show",
    "spot.hours_csv",
    "spot.index",
    "spot.survival_csv",
    "static",
    "submissions.show",
    "submissions.state",
    "usage.cards",
    "usage.csv",
    "usage.failures",
    "usage.index",
    "usage.larger",
    "usage.limits",
    "wait_causes.index",
    "wait_causes.index_csv",
    "waits.by",
    "waits.by_csv",
    "waits.curves_csv",
    "waits.distribution",
    "waits.distribution_csv",
    "waits.index_csv",
    "waits.over_time",
    "waits.over_time_csv",
    "waits.week",
    "waits.week_csv",
}


@pytest.fixture
def app(site: Site) -> Flask:
    return site.app


def test_each_route_says_what_it_needs_or_is_public(app: Flask) -> None:
    guarded = {n for n, v in app.view_functions.items() if hasattr(v, "required_permission")}
    assert guarded | PUBLIC == set(app.view_functions)
    assert not guarded & PUBLIC


def test_each_page_is_in_the_menu_or_known_not_to_be(app: Flask) -> None:
    pages = {
        rule.endpoint
        for rule in app.url_map.iter_rules()
        if "GET" in (rule.methods or ()) and not rule.endpoint.startswith("api.")
    }
    with app.test_request_context("/"):
        g.viewer = b.viewer("boss", role="administrator")
        in_menu = {endpoint for endpoint, _ in menu()}
    assert pages == in_menu | NOT_IN_MENU


def test_each_post_refuses_a_request_without_a_token(app: Flask) -> None:
    for rule in app.url_map.iter_rules():
        if "POST" not in (rule.methods or ()) or rule.endpoint.startswith("api."):
            continue
        values = dict.fromkeys(rule.arguments, "1") | dict(rule.defaults or {})
        with app.test_request_context():
            path = app.url_for(rule.endpoint, **values)
        status = app.test_client().post(path).status_code
        assert status in {400, 401}, rule.endpoint


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_a_template_compiles_and_names_only_real_endpoints(path: Path, app: Flask) -> None:
    tree = app.jinja_env.parse(path.read_text())
    app.jinja_env.compile(path.read_text())
    for call in tree.find_all(nodes.Call):
        if isinstance(call.node, nodes.Name) and call.node.name == "url_for":
            name = call.args[0]
            if isinstance(name, nodes.Const):
                assert name.value in app.view_functions, name.value


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_a_template_has_no_inline_style_or_script(path: Path) -> None:
    text = path.read_text()
    assert not re.search(r"\sstyle\s*=", text)
    assert not re.search(r"\son[a-z]+\s*=", text)
    assert not re.search(r"<script(?![^>]*\ssrc=)", text)
    assert "| safe" not in text
    assert "<style" not in text


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_a_template_uses_htmx_4_and_nothing_that_needs_eval(path: Path) -> None:
    text = path.read_text()
    for old in ("hx-ext", "hx-on", "hx-disinherit", "hx-inherit", "hx-params", "hx-history"):
        assert old not in text
    assert not re.search(r'hx-trigger="[^"]*\[', text), "a trigger filter is evaluated"
    assert not re.search(r'hx-(vals|headers|confirm)="js:', text)


def test_our_scripts_write_text_and_never_html() -> None:
    for path in sorted((PACKAGE / "web" / "static").glob("*.js")):
        text = path.read_text()
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "eval(", "document.write"):
            assert word not in text, path.name


def test_each_state_reason_and_problem_has_a_sentence() -> None:
    assert set(STATE_TEXTS) == set(JobState)
    assert set(REASON_TEXTS) == REASON_KEYS
    numbers = {slurm_errors.code(number) for number in slurm_errors.known_numbers()}
    limits = {
        slurm_errors.code(2050, f"{kind}{what}") for kind in ("Assoc", "QOS") for what in LIMITS
    }
    assert numbers | limits | set(policy.CODES) <= set(TEXTS)


LIMITS = ("MaxSubmitJobLimit", "MaxWallDurationPerJobLimit", "GrpGRESLimit")


def test_each_code_that_the_program_raises_has_a_sentence() -> None:
    known = TEXTS.keys() | REFUSALS.keys()  # some are told by the command line alone
    missing = {code: place for code, place in _codes_raised().items() if code not in known}
    assert missing == {}


def test_each_kind_of_event_has_a_sentence() -> None:
    kinds = {
        argument.value
        for path in (PACKAGE / "services").glob("*.py")
        for call in _calls(path, {"add", "_event", "add_for_jobs"})
        for argument in call.args[1:2]
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    }
    assert kinds <= set(EVENT_TEXTS)


_RAISED = {
    "Refused",
    "BrokerRefused",
    "BrokerUnreachable",
    "BrokerSilent",
    "BadMessage",
    "BadTimeLimit",
    "BadScript",
    "BadValue",
    "FieldProblem",
    "_require",
}


def _codes_raised() -> dict[str, str]:
    """Codes in constants: Refused("x"), BrokerRefused(text, code="x"), FieldProblem("f", "x")."""
    found: dict[str, str] = {}
    for part in ("core", "services", "broker", "brokerclient", "store"):
        for path in sorted((PACKAGE / part).rglob("*.py")):
            for call in _calls(path, _RAISED):
                for code in _codes_of(call):
                    found.setdefault(code, f"{path.name}:{call.lineno}")
    return found


def _codes_of(call: ast.Call) -> list[str]:
    name = _name(call)
    named = [k.value for k in call.keywords if k.arg == "code"]
    place = {"FieldProblem": 1, "_require": 1, "Refused": 0, "BadTimeLimit": 0}.get(name)
    place = 0 if name in {"BadScript", "BadValue"} else place
    given = call.args[place : place + 1] if place is not None else []
    constants = [n for n in (*named, *given) if isinstance(n, ast.Constant)]
    return [n.value for n in constants if isinstance(n.value, str)]


def _calls(path: Path, names: set[str]) -> list[ast.Call]:
    tree = ast.parse(path.read_text())
    return [n for n in ast.walk(tree) if isinstance(n, ast.Call) and _name(n) in names]


def _name(call: ast.Call) -> str:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""
