"""What the form refuses for a limit: the field, and a nearest value that works."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.ask import Ask
from gateway.core.policy import build_offer, judge
from gateway.core.qos import GroupPolicy, tres
from gateway.testing import builders as b
from gateway.testing.template_samples import shipped
from gateway.wire import policy as p

ASK = Ask(
    template="ddp",
    group="nlp",
    partition="a100",
    qos="normal",
    nodes="2",
    nproc_per_node="4",
    time_limit="120",
    name="train",
    working_directory="~",
    values={"script": "train.py"},
)
DDP = shipped("ddp")
NODES = tuple(b.node(f"a100-{n}", cpus=128) for n in range(4))


def account(name="nlp", parent=None, **limits):
    return p.Account(GroupPolicy(name=name, **limits), parent, name, "lab", ())


def offer(*, qos=None, association=None, accounts=()):
    return build_offer(
        "member",
        (association or b.association(),),
        (b.partition(),),
        (qos or b.qos(), b.qos("spot")),
        NODES,
        accounts=accounts,
    )


def problems(ask, given):
    return {one.field: (one.code, one.nearest) for one in judge(ask, given, DDP).problems}


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"max_tres_per_job": tres({"cpu": 16})}, {"nodes": ("size_above_job_limit", "1")}),
        ({"max_tres_per_job": tres({"node": 1})}, {"nodes": ("size_above_job_limit", "1")}),
        (
            {"max_tres_per_node": tres({"gres/gpu": 2})},
            {"nproc_per_node": ("gpus_above_node_limit", "2")},
        ),
        ({"grp_tres": tres({"gres/gpu": 4})}, {"nodes": ("gpus_above_qos_limit", "1")}),
        (
            {"min_tres_per_job": tres({"gres/gpu": 12})},
            {"nproc_per_node": ("size_below_least", "6")},
        ),
        (
            {"max_tres_minutes_per_job": tres({"gres/gpu": 480})},
            {"time_limit": ("time_above_job_minutes", "60")},
        ),
        ({"max_jobs_per_user": 0}, {"qos": ("nothing_may_start", "spot")}),
        ({"grp_tres_minutes": tres({"gres/gpu": 0})}, {"qos": ("nothing_may_start", "spot")}),
        ({"max_tres_per_job": tres({"mem": 1})}, {}),
        ({"max_tres_per_job": tres({"gres/gpu:a100": 4})}, {}),
    ],
)
def test_a_limit_of_the_qos(limits, expected):
    assert problems(ASK, offer(qos=b.qos(**limits))) == expected


def test_a_limit_on_a_type_counts_for_those_who_name_it():
    given = offer(qos=b.qos(max_tres_per_job=tres({"gres/gpu:a100": 4})))
    found = problems(replace(ASK, gpu_type="a100"), given)
    assert found == {"nodes": ("size_above_job_limit", "1")}


def test_a_group_above_is_too_small():
    accounts = (account(parent="lab"), account("lab", grp_tres=tres({"gres/gpu": 4})))
    assert problems(ASK, offer(accounts=accounts)) == {"nodes": ("gpus_above_group_limit", "1")}


def test_the_qos_lifts_the_groups_limit():
    accounts = (account(grp_tres=tres({"gres/gpu": 4})),)
    given = offer(accounts=accounts, qos=b.qos(grp_tres=tres({"gres/gpu": 64})))
    assert problems(ASK, given) == {}


def test_a_member_who_is_closed():
    given = offer(association=b.association(max_submit_jobs=0))
    assert problems(ASK, given) == {"group": ("nothing_may_start", None)}


def test_more_tasks_than_may_be_queued():
    sweep = replace(
        ASK,
        template="sweep",
        nodes="1",
        nproc_per_node="1",
        values={"script": "train.py", "table": "lr\n1\n2\n3\n"},
    )
    given = offer(association=b.association(max_submit_jobs=2))
    found = [one.code for one in judge(sweep, given, shipped("sweep")).problems]
    assert "tasks_above_submit_limit" in found


KEYS = st.sampled_from(
    ["max_tres_per_job", "max_tres_per_node", "max_tres_per_user", "max_tres_per_account"]
)


@given(
    st.dictionaries(
        KEYS,
        st.dictionaries(st.sampled_from(["gres/gpu", "cpu", "node"]), st.integers(1, 40)),
        max_size=3,
    ),
    st.integers(1, 4),
    st.integers(1, 8),
)
def test_every_nearest_value_ends_the_problem(limits, nodes, per):
    """Taking all that is proposed, a few times over, leaves nothing to propose."""
    given_offer = offer(qos=b.qos(**{key: tres(rows) for key, rows in limits.items()}))
    ask = replace(ASK, nodes=str(nodes), nproc_per_node=str(per))
    for _ in range(3):
        told = judge(ask, given_offer, DDP).problems
        changes = {one.field: one.nearest for one in told if one.nearest is not None}
        ask = replace(ask, **changes)
    assert all(one.nearest is None for one in judge(ask, given_offer, DDP).problems)
