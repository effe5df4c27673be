"""The file of policy: what is written can be read, and what cannot be meant is refused by place."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.policy_file import BadPolicyFile, PolicyFile, dump, load
from gateway.core.qos import (
    FIELDS,
    FLAGS,
    GROUP_FIELDS,
    Field,
    GroupPolicy,
    Kind,
    Qos,
    tres,
)
from gateway.core.qos_checks import problems

NAMES = st.from_regex(r"[a-z0-9_][a-z0-9_.-]{0,9}", fullmatch=True).filter(lambda n: n != "root")
COUNTS = st.integers(0, 2**30)
MAYBE = st.none() | COUNTS
# Also what Slurm may hold and the portal would not write.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
RESOURCES = st.sampled_from(["cpu", "mem", "node", "gres/gpu", "gres/gpu:a100", "license/x"])
OF_KIND = {
    Kind.TEXT: st.from_regex(r"[a-zé .,;=#\[\]{}-]{0,20}", fullmatch=True),
    Kind.COUNT: MAYBE,
    Kind.NUMBER: COUNTS,
    Kind.MINUTES: st.none() | st.integers(0, 2**31 // 60 - 60),
    Kind.SECONDS: MAYBE,
    Kind.MILLIONTHS: st.none() | st.integers(1, 10**12),
    Kind.TRES: st.dictionaries(RESOURCES, st.integers(0, 2**20)).map(tres),
    Kind.NAMES: st.sets(NAMES, max_size=3).map(lambda found: tuple(sorted(found))),
    Kind.FLAGS: st.sets(st.sampled_from(FLAGS)).map(lambda found: tuple(sorted(found))),
    Kind.MODES: st.sampled_from([("cluster",), ("requeue",), ("requeue", "within")]),
    Kind.NAME: st.none() | NAMES,
    Kind.SHARES: MAYBE,
}


def values(field: Field):
    found = OF_KIND[field.kind]
    never_none = field.key in ("usage_factor_millionths", "grace_seconds")
    return found.filter(lambda one: one is not None) if never_none else found


def policies(make, fields):
    built = st.builds(make, name=NAMES, **{field.key: values(field) for field in fields})
    return built.filter(lambda one: not problems(one))


QOS, GROUPS = policies(Qos, FIELDS), policies(GroupPolicy, GROUP_FIELDS)


def unique(found):
    return st.lists(found, max_size=4, unique_by=lambda one: one.name).map(
        lambda many: tuple(sorted(many, key=lambda one: one.name))
    )


@given(unique(QOS), unique(GROUPS))
def test_what_is_written_is_read_back(qos, groups):
    assert load(dump(qos, groups)) == PolicyFile(qos, groups)


@given(TEXTS, TEXTS)
def test_whatever_slurm_holds_is_toml(description, name):
    """A description or a name that the portal would refuse still exports as itself."""
    found = tomllib.loads(dump([Qos(name=name, description=description)]))
    assert found["qos"][name].get("description", "") == description


@given(unique(QOS))
def test_the_order_does_not_depend_on_that_of_slurm(qos):
    assert dump(qos) == dump(reversed(qos))


def test_it_reads_as_a_person_would_write_it():
    high = Qos(
        name="high",
        priority=1000,
        usage_factor_millionths=820_000,
        preempts=("spot",),
        max_wall_minutes=2880,
        grace_seconds=90,
        grp_tres=tres({"gres/gpu": 8, "cpu": 64}),
    )
    group = GroupPolicy(name="nlp.2", qos=("high", "normal"), shares=None)
    assert dump([high, Qos(name="normal")], [group]).splitlines()[2:] == [
        "[qos.high]",
        "priority = 1000",
        'usage_factor = "0.82"',
        'preempts = ["spot"]',
        'grace = "0-00:01:30"',
        'grp_tres = {cpu = 64, "gres/gpu" = 8}',
        'max_wall = "2-00:00:00"',
        "",
        "[qos.normal]",
        "",
        '[groups."nlp.2"]',
        'qos = ["high", "normal"]',
        'shares = "parent"',
    ]


def test_comments_and_other_spellings_of_a_time_are_fine():
    read = load('# ours\n[qos.a]\nmax_wall = "48:00:00"  # two days\n')
    assert read.qos == (Qos(name="a", max_wall_minutes=2880),)


@pytest.mark.parametrize(
    ("text", "place", "code"),
    [
        ("[qos.a]\n[qos.a]", "", "file_unreadable"),
        ("[qos.a]\npriority = 1\npriority = 2", "", "file_unreadable"),
        ("[qos.a", "", "file_unreadable"),
        ("a = " + "[" * 5000, "", "file_unreadable"),
        ("[qos.a]\npriority = " + "9" * 5000, "", "file_unreadable"),
        ("[qoss.a]", "qoss", "file_unknown_key"),
        ("[qos.a]\nmax_jobs = 1", "qos.a.max_jobs", "file_unknown_key"),
        ("[qos.a]\nmax_wall_minutes = 1", "qos.a.max_wall_minutes", "file_unknown_key"),
        ('[qos.a]\npriority = "1"', "qos.a.priority", "file_not_a_whole_number"),
        ("[qos.a]\npriority = true", "qos.a.priority", "file_not_a_whole_number"),
        ("[qos.a]\npriority = 1.5", "qos.a.priority", "file_not_a_whole_number"),
        ("[qos.a]\npriority = -1", "qos.a.priority", "policy_bad_number"),
        ("[qos.a]\nusage_factor = 0.82", "qos.a.usage_factor", "file_not_a_factor"),
        ('[qos.a]\nusage_factor = "0.8200001"', "qos.a.usage_factor", "file_not_a_factor"),
        ("[qos.a]\nmax_wall = 60", "qos.a.max_wall", "file_not_a_time"),
        ('[qos.a]\nmax_wall = "1-24:00:00"', "qos.a.max_wall", "file_not_a_time"),
        ('[qos.a]\nmax_wall = "00:00:30"', "qos.a.max_wall", "file_not_whole_minutes"),
        ('[qos.a]\ngrp_tres = "cpu=1"', "qos.a.grp_tres", "file_not_resources"),
        ('[qos.a]\ngrp_tres = {cpu = "1"}', "qos.a.grp_tres", "file_not_a_whole_number"),
        ("[qos.a]\ngrp_tres = {Bad = 1}", "qos.a.grp_tres", "policy_bad_tres"),
        ('[qos.a]\npreempts = "b"', "qos.a.preempts", "file_not_a_list"),
        ("[qos.a]\npreempts = [1]", "qos.a.preempts", "file_not_a_text"),
        ('[qos.a]\nflags = ["NoSuch"]', "qos.a.flags", "policy_unknown_word"),
        ("[qos]\na = 1", "qos.a", "file_not_a_table"),
        ("qos = 1", "qos", "file_not_a_table"),
        ("[[qos]]\na = 1", "qos", "file_not_a_table"),
        ("[qos.Normal]", "qos.Normal", "policy_bad_name"),
        ('[qos."a\'--"]', 'qos."a\'--"', "policy_bad_name"),
        ('[qos.""]', 'qos.""', "policy_bad_name"),
        ("[groups.root]", "groups.root", "root_account_refused"),
        ("[groups.a]\npriority = 1", "groups.a.priority", "file_unknown_key"),
        ('[groups.a]\nshares = "all"', "groups.a.shares", "file_not_a_whole_number"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_its_place(text, place, code):
    with pytest.raises(BadPolicyFile) as refused:
        load(text)
    assert [(one.place, one.code) for one in refused.value.problems] == [(place, code)]


def test_every_problem_is_told_at_once_and_the_line_of_one_that_is_no_toml():
    with pytest.raises(BadPolicyFile) as refused:
        load("[qos.a]\nx = 1\n[qos.b]\npriority = -1\n[groups.c]\ny = 1")
    places = [one.place for one in refused.value.problems]
    assert places == ["groups.c.y", "qos.a.x", "qos.b.priority"]
    with pytest.raises(BadPolicyFile) as refused:
        load("[qos.a]\n[qos.a]")
    assert "line 2" in refused.value.problems[0].detail
