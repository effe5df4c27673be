"""What must not come near sacctmgr, and what Slurm makes of the rest."""

from dataclasses import fields, replace

import pytest

from gateway.core.qos import (
    FIELDS,
    GROUP_FIELDS,
    GroupPolicy,
    Kind,
    Qos,
    TresLimit,
    changes,
    fields_of,
    gpu_limit,
    limit_of,
    tres,
)
from gateway.core.qos_checks import as_kept, problems

ONE = Qos(name="one")
NLP = GroupPolicy(name="nlp", qos=("normal", "spot"), default_qos="normal")


def codes(wanted, before=None):
    return {one.key: one.code for one in problems(wanted, before)}


@pytest.mark.parametrize("name", ["a", "_x", "0", "spot-2.b", "a" * 60])
def test_names_that_slurm_keeps_as_they_are(name):
    assert codes(Qos(name=name)) == {}


@pytest.mark.parametrize(
    "name", ["", "A", "a b", "a,b", "+a", "-a", "a'--", 'a"', "a[1-2]", "é", "a\n", "a" * 61, "."]
)
def test_names_that_sacctmgr_would_read_as_something_else(name):
    bad = "policy_bad_name"
    assert codes(Qos(name=name)) == codes(GroupPolicy(name=name)) == {"name": bad}
    assert codes(replace(ONE, preempts=(name,))) == {"preempts": bad}
    assert codes(replace(NLP, qos=(name,), default_qos=None)) == {"qos": bad}
    assert codes(replace(NLP, qos=(), default_qos=name)) == {"default_qos": bad}


@pytest.mark.parametrize(
    ("code", "field", "value"),
    [
        ("policy_bad_text", "description", "a'b"),
        ("policy_bad_text", "description", "a\nb"),
        ("policy_bad_text", "description", "\ud800"),
        ("policy_bad_text", "description", "x" * 201),
        ("policy_bad_number", "priority", -1),
        ("policy_bad_number", "grp_jobs", 2**31),
        ("policy_bad_number", "max_wall_minutes", 35_791_394),
        ("policy_bad_number", "preempt_exempt_seconds", 2**31),
        ("policy_bad_number", "usage_factor_millionths", 10**12 + 1),
        ("policy_bad_number", "limit_factor_millionths", 0),
        ("policy_bad_number", "grp_tres", tres({"cpu": -1})),
        ("policy_bad_number", "grp_tres", tres({"cpu": 2**40 + 1})),
        ("policy_bad_memory", "grp_tres", tres({"mem": 2**30 + 1})),
        ("policy_bad_memory", "grp_tres", tres({"mem": 1_049_088})),
        ("policy_bad_memory", "grp_tres", tres({"mem": 1_573_376})),
        ("policy_bad_tres", "grp_tres", tres({"cpu,mem": 1})),
        ("policy_bad_tres", "grp_tres", ("cpu",)),
        ("policy_twice", "grp_tres", (TresLimit("cpu", 1), TresLimit("cpu", 2))),
        ("policy_unknown_word", "flags", ("NoSuchFlag",)),
        ("policy_unknown_word", "preempt_mode", ()),
        ("policy_unknown_word", "preempt_mode", ("off",)),
        ("policy_two_modes", "preempt_mode", ("cancel", "requeue")),
        ("policy_two_modes", "preempt_mode", ("gang", "within")),
        ("policy_two_modes", "preempt_mode", ("cluster", "gang")),
        ("policy_preempts_itself", "preempts", ("one",)),
    ],
)
def test_a_value_that_slurm_cannot_keep_is_named_with_its_field(code, field, value):
    wanted = replace(ONE, **{field: value})
    assert codes(wanted) == {field: code}
    assert codes(wanted, wanted) == {}  # it is there: nothing is sent of it
    assert codes(wanted, ONE) == {field: code}


@pytest.mark.parametrize("mebibytes", [0, 512, 1536, 512_001, 1_048_576, 1_049_600, 1_572_864])
def test_memory_that_slurm_prints_without_loss(mebibytes):
    assert codes(replace(ONE, grp_tres=tres({"mem": mebibytes}))) == {}


@pytest.mark.parametrize("modes", [("cluster",), ("cancel", "within"), ("gang", "suspend")])
def test_modes_that_go_together(modes):
    assert codes(replace(ONE, preempt_mode=modes)) == {}


def test_the_default_is_in_the_list_where_there_is_one():
    out = "policy_default_not_listed"
    assert codes(replace(NLP, default_qos="urgent")) == {"qos": out, "default_qos": out}
    assert codes(replace(NLP, default_qos="urgent"), NLP) == {"default_qos": out}
    assert codes(replace(NLP, qos=("spot",)), NLP) == {"qos": out}
    assert codes(replace(NLP, qos=())) == codes(replace(NLP, default_qos=None)) == {}


def test_root_is_no_group_and_parent_is_no_number():
    assert codes(GroupPolicy(name="root")) == {"name": "root_account_refused"}
    assert codes(replace(NLP, shares=2**31 - 1)) == {"shares": "policy_bad_number"}
    assert codes(replace(NLP, shares=None)) == codes(replace(NLP, shares=0)) == {}


def test_what_slurm_gives_back():
    typed = replace(
        ONE,
        description="  For A, Ü ",
        preempts=("spot", "low", "spot"),
        flags=("NoDecay", "DenyOnLimit"),
        grp_tres=(TresLimit("mem", 1), TresLimit("cpu", 1)),
        priority=3,
    )
    kept = as_kept(typed)
    assert (kept.description, kept.preempts) == ("for a, Ü", ("low", "spot"))
    assert (kept.flags, kept.grp_tres) == (
        ("DenyOnLimit", "NoDecay"),
        tres({"cpu": 1, "mem": 1}),
    )
    assert as_kept(kept) == kept
    # A Slurm that keeps capitals is not told to lose them by a change of something else.
    assert as_kept(replace(typed, priority=4), typed) == replace(typed, priority=4)


def test_the_tables_have_every_field_and_what_differs_is_told_in_their_order():
    for table, kind in ((FIELDS, Qos), (GROUP_FIELDS, GroupPolicy)):
        assert [one.key for one in table] == [one.name for one in fields(kind)][1:]
    after = replace(ONE, max_wall_minutes=5, priority=3)
    assert [(c.field.key, c.before, c.after) for c in changes(ONE, after)] == [
        ("priority", 0, 3),
        ("max_wall_minutes", None, 5),
    ]
    assert fields_of(NLP)[0].kind is Kind.NAMES


def test_a_limit_of_one_type_of_card_is_none_of_all_cards():
    rows = tres({"gres/gpu:a100": 4})
    assert (gpu_limit(rows), limit_of(rows, "gres/gpu:a100")) == (None, 4)
    limits = replace(ONE, max_tres_per_job=tres({"gres/gpu": 8}), max_tres_per_user=rows)
    assert (limits.max_gpus_per_job, limits.max_gpus_per_user) == (8, None)
    assert limits.max_gpus_per_group is None
