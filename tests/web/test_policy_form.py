"""The form of policy: what it shows is what it reads, and nothing that is typed goes further
than a sentence at its field."""

from collections.abc import Iterator
from typing import Any

import pytest
from flask import Flask, g
from hypothesis import HealthCheck, given
from hypothesis import settings as tried
from hypothesis import strategies as st

from gateway.config import load_settings
from gateway.core import qos
from gateway.core.qos import FIELDS, FLAGS, GROUP_FIELDS, PREEMPT_MODES, Field, Kind, Qos, Scope
from gateway.core.qos_checks import problems
from gateway.testing import builders as b
from gateway.testing.fakebroker import FakeBroker
from gateway.web.app import create_app
from gateway.web.policy_form import Offered, PolicyForm, typed_policy
from gateway.web.policy_texts import (
    FIELD_TEXTS,
    FLAG_TEXTS,
    GROUP_SCOPES,
    MODE_TEXTS,
    QOS_SCOPES,
)
from gateway.web.policy_words import lines, words

OFFERED = Offered(("gres/gpu", "gres/gpu:a100", "cpu", "mem", "node"), ("normal", "spot"))
HOSTILE = (
    "10" + "0" * 30,
    "٣",  # a digit, but none that Slurm reads
    "8\x00",
    "8;9",
    "-1",
    "1e3",
    "nan",
    "<b>8</b>",
    "{{ 8 }}",
    "$(id)",
    "8\n9",
    "=8",
)


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Flask:
    """One for all of these tests: they need its texts, and no database."""
    settings = load_settings({"SLUICE_HOME": str(tmp_path_factory.mktemp("home"))})
    return create_app(settings, broker=FakeBroker())


@pytest.fixture(autouse=True)
def reader(app: Flask) -> Iterator[None]:
    """Texts are looked up in somebody's language."""
    with app.test_request_context("/"):
        g.viewer = b.viewer("boss", role="administrator")
        yield


def _field(key: str) -> Field:
    return next(one for one in (*FIELDS, *GROUP_FIELDS) if one.key == key)


def _form(before: qos.Policy, **typed: Any) -> PolicyForm:
    sent = typed_policy(before)
    for name, found in typed.items():
        sent.setlist(name.replace("__", "."), found if isinstance(found, list) else [found])
    return PolicyForm(sent, before=before, offered=OFFERED, is_new=False)


def _problem(form: PolicyForm, key: str) -> str:
    controls = [one for section in form.sections() for one in section.controls]
    return next(one.problem for one in controls if one.field.key == key)


def test_each_field_scope_flag_and_mode_has_words() -> None:
    assert {one.key for one in (*FIELDS, *GROUP_FIELDS)} == set(FIELD_TEXTS)
    assert set(FLAG_TEXTS) == set(FLAGS)
    assert set(MODE_TEXTS) == set(PREEMPT_MODES)
    assert {one.scope for one in FIELDS} == set(QOS_SCOPES) == set(Scope)
    assert {one.scope for one in GROUP_FIELDS} == set(GROUP_SCOPES)


_counts = st.none() | st.integers(0, 2**31 - 1)
_minutes = st.none() | st.integers(1, 10_000_000)
_millionths = st.integers(0, 10**12)
_tres = st.dictionaries(
    st.sampled_from(OFFERED.resources), st.integers(0, 1_000_000), max_size=4
).map(qos.tres)
_KINDS: dict[Kind, st.SearchStrategy[Any]] = {
    Kind.TEXT: st.text("abc xyz-äß数", max_size=50).map(lambda text: text.strip().lower()),
    Kind.COUNT: _counts,
    Kind.NUMBER: st.integers(0, 2**31 - 1),
    Kind.MINUTES: _minutes,
    Kind.SECONDS: st.none() | st.integers(0, 10**8),
    Kind.MILLIONTHS: st.none() | _millionths,
    Kind.TRES: _tres,
    Kind.NAMES: st.sets(st.sampled_from(OFFERED.qos)).map(lambda names: tuple(sorted(names))),
    Kind.FLAGS: st.sets(st.sampled_from(FLAGS)).map(lambda names: tuple(sorted(names))),
    Kind.MODES: st.sampled_from([("cluster",), ("requeue",), ("cancel", "within")]),
}
_ALWAYS = {"usage_factor_millionths": _millionths, "grace_seconds": st.integers(0, 10**8)}
_QOS = st.builds(
    Qos,
    name=st.just("high"),
    **{one.key: _ALWAYS.get(one.key, _KINDS[one.kind]) for one in FIELDS},
)


@tried(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_QOS)
def test_what_the_form_shows_of_a_qos_reads_back_as_the_same_qos(level: Qos) -> None:
    form = _form(level)
    assert form.wanted == level
    assert [words(one, qos.value(level, one)) for one in FIELDS]  # each value has words


def test_rows_of_resources_are_read_and_empty_ones_left_out() -> None:
    form = _form(Qos(name="high"), grp_tres__resource=["gres/gpu", "", "mem"],
                 grp_tres__number=["64", "", "0.5"])  # fmt: skip
    assert form.wanted == Qos(name="high", grp_tres=qos.tres({"gres/gpu": 64, "mem": 512}))


@pytest.mark.parametrize(("resource", "number", "says"), [
    ("gres/gpu", "", "Type a number, or leave the whole row empty."),
    ("", "8", "Choose which resource."),
    ("gres/gpu", "1.5", "Type a number such as 64 or 1.5."),
    ("gres/gpu,cpu", "8", "Choose a resource of the list."),
])  # fmt: skip
def test_a_row_that_cannot_be_says_why_and_keeps_what_was_typed(
    resource: str, number: str, says: str
) -> None:
    form = _form(Qos(name="high"), grp_tres__resource=[resource], grp_tres__number=[number])
    assert form.wanted is None
    assert _problem(form, "grp_tres") == says
    control = next(c for s in form.sections() for c in s.controls if c.field.key == "grp_tres")
    assert control.rows[0].number == number


def test_a_resource_twice_is_refused() -> None:
    form = _form(Qos(name="high"), grp_tres__resource=["cpu", "cpu"], grp_tres__number=["1", "2"])
    assert _problem(form, "grp_tres") == "Each resource once."


def test_one_more_row_comes_by_a_button() -> None:
    before = Qos(name="high", grp_tres=qos.tres({"cpu": 4}))
    form = _form(before, add="grp_tres")
    control = next(c for s in form.sections() for c in s.controls if c.field.key == "grp_tres")
    assert [row.number for row in control.rows] == ["4", ""]


@pytest.mark.parametrize("key", ["grp_jobs", "max_wall_minutes", "max_submit_per_user"])
def test_0_asks_first_and_is_taken_with_the_tick(key: str) -> None:
    form = _form(Qos(name="high"), **{key: "0"})
    assert form.wanted is None
    assert _problem(form, key).startswith("0 means that nothing is allowed.")
    ticked = _form(Qos(name="high"), zero=[key], **{key: "0"})
    assert ticked.wanted == Qos(name="high", **{key: 0})


def test_0_of_a_resource_asks_as_well_but_not_for_what_is_so_already() -> None:
    rows = {"max_tres_per_user__resource": ["gres/gpu"], "max_tres_per_user__number": ["0"]}
    assert _form(Qos(name="high"), **rows).wanted is None
    before = Qos(name="high", max_tres_per_user=qos.tres({"gres/gpu": 0}))
    assert _form(before).wanted == before


def test_nothing_typed_means_no_limit_and_some_fields_need_a_number() -> None:
    before = Qos(name="high", grp_jobs=5, max_wall_minutes=60)
    assert _form(before, grp_jobs="", max_wall_minutes="").wanted == Qos(name="high")
    assert _problem(_form(before, priority=""), "priority") != ""
    assert _problem(_form(before, usage_factor_millionths=""), "usage_factor_millionths") != ""


def test_times_are_typed_as_time_limits_are_and_echoed_in_words() -> None:
    form = _form(Qos(name="high"), max_wall_minutes="2-12", grace_seconds="1:30")
    assert form.wanted == Qos(name="high", max_wall_minutes=3600, grace_seconds=90)
    readings = {c.field.key: c.reading for s in form.sections() for c in s.controls}
    assert readings["max_wall_minutes"] == "2 days 12 hours"
    assert readings["grace_seconds"] == "1 minute 30 seconds"


@pytest.mark.parametrize("typed", HOSTILE)
@pytest.mark.parametrize("key", [one.key for one in FIELDS if one.kind in {
    Kind.COUNT, Kind.NUMBER, Kind.MINUTES, Kind.SECONDS, Kind.MILLIONTHS}])  # fmt: skip
def test_no_number_is_made_of_what_is_none(key: str, typed: str) -> None:
    form = _form(Qos(name="high"), **{key: typed})
    assert form.wanted is None
    assert _problem(form, key) != ""


@pytest.mark.parametrize("typed", HOSTILE)
def test_no_amount_of_a_resource_is_made_of_what_is_none(typed: str) -> None:
    for resource in ("cpu", "mem"):
        form = _form(Qos(name="high"), grp_tres__resource=[resource], grp_tres__number=[typed])
        assert form.wanted is None
        assert _problem(form, "grp_tres") != ""


@pytest.mark.parametrize("name", ["", "a'--", "Ö", "x y", "-x", "+x", "a,b", "x" * 61, "UPPER"])
def test_a_name_that_must_not_come_near_slurm_is_refused(name: str) -> None:
    sent = typed_policy(Qos(name=""))
    sent["name"] = name
    form = PolicyForm(sent, before=Qos(name=""), offered=OFFERED, is_new=True)
    assert form.wanted is None
    assert form.name_problem.startswith("Small letters")


def test_boxes_that_nobody_offered_are_refused() -> None:
    assert _problem(_form(Qos(name="high"), flags=["NoSuchFlag"]), "flags") != ""
    assert _problem(_form(Qos(name="high"), preempts=["a'--"]), "preempts") != ""
    assert _problem(_form(Qos(name="high"), preempt_mode=[]), "preempt_mode") != ""


@pytest.mark.parametrize(("key", "value", "said"), [
    ("grp_tres", qos.tres({"gres/gpu": 8, "mem": 65536}), ["8 GPUs", "64 GiB memory"]),
    ("grp_tres", qos.tres({"gres/gpu": 0}), ["GPUs: nothing allowed"]),
    ("grp_tres_minutes", qos.tres({"gres/gpu": 60_000}), ["1,000 GPU-hours"]),
    ("grp_tres_minutes", qos.tres({"gres/gpu:a100": 90}), ["90 GPU-minutes a100"]),
    ("grp_tres", (), ["no limit"]),
    ("grp_jobs", 0, ["nothing allowed"]),
    ("grp_jobs", 1200, ["1,200 jobs"]),
    ("max_wall_minutes", 2880, ["2 days"]),
    ("usage_factor_millionths", 1_500_000, ["1.5×"]),
    ("usage_factor_millionths", 1_000_000, ["1×"]),
    ("limit_factor_millionths", None, ["not set"]),
    ("preempts", (), ["none"]),
    ("shares", None, ["with those of the group above"]),
    ("grace_seconds", 0, ["none"]),
])  # fmt: skip
def test_values_read_as_words(key: str, value: qos.Value, said: list[str]) -> None:
    assert lines(_field(key), value) == said


def test_the_checks_of_the_form_are_those_of_the_core() -> None:
    wanted = Qos(name="high", preempts=("high",))
    form = _form(Qos(name="high"), preempts=["high"])
    assert form.wanted is None
    assert {one.key for one in problems(wanted)} == {"preempts"}
