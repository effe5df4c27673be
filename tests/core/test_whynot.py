"""Every reason word has an answer; the limit, its use, who holds it, and helps that work."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.caps import JOBS, KEYS, Cap, Holder, Shape, Way
from gateway.core.maintenance import Clash
from gateway.core.reason_limits import LIMITS, limit_of
from gateway.core.reasons import REASONS
from gateway.core.usage import FreeNode, Running, Whose
from gateway.core.whyhelp import CODES, Choice, Help, Trial
from gateway.core.whynot import UNKNOWN, Facts, Job, Out, why
from gateway.testing.builders import NOW

JOB = Job(9, "a100")
SHAPE = Shape(nodes=1, gpus_per_node=8, gpu_type=None, cpus=32, minutes=600)
RECORDED = Path(__file__).parents[1] / "recorded/slurm-26.05/job_reasons.txt"


def running(number, user="member", gpus=4, hours=1, **more):
    given_facts = {
        "group": "nlp",
        "qos": "normal",
        "gpu_type": "a100",
        "cpus": 16,
        "nodes": frozenset({f"a100-{number}"}),
        "ends": NOW + timedelta(hours=hours),
        "seen": True,
        "own": user == "member",
    }
    return Running(number, str(number), user, gpus=gpus, **(given_facts | more))


def cap(key, limit, resource="gres/gpu", *, holder=Holder.QOS, name="normal", accounts=()):
    return Cap(holder, name, key, resource, limit, frozenset(accounts))


def trial(*caps, **more):
    facts = {"whose": Whose("member", "nlp"), "shape": SHAPE, "own_qos": "normal", "now": NOW}
    return Trial(**(facts | {"caps": caps} | more))


def test_each_word_that_names_a_limit_has_its_field():
    words = set(RECORDED.read_text().split())
    patterns = ("Assoc", "QOSGrp", "QOSMax", "QOSMin", "PerAccount", "PerUser")
    limits = {word for word in words if any(part in word for part in patterns)}
    assert limits <= LIMITS.keys()
    assert {one.key for one in LIMITS.values()} - KEYS.keys() == {
        None,
        "usage_threshold_millionths",
        "max_nodes",
        "max_time_minutes",
    }


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("QOSMaxGRESPerUser", (Holder.QOS, "max_tres_per_user", "gres/gpu")),
        ("AssocGrpGRES", (Holder.GROUP, "grp_tres", "gres/gpu")),
        ("AssocGrpCPURunMinutesLimit", (Holder.GROUP, "grp_tres_run_minutes", "cpu")),
        ("QOSGrpMemoryRunMinutes", (Holder.QOS, "grp_tres_run_minutes", "mem")),
        ("MaxNodePerAccount", (Holder.QOS, "max_tres_per_account", "node")),
        ("QOSMinCpuNotSatisfied", (Holder.QOS, "min_tres_per_job", "cpu")),
        ("PartitionTimeLimit", (Holder.PARTITION, "max_time_minutes", None)),
    ],
)
def test_the_field_of_a_word(word, expected):
    found = limit_of(word)
    assert (found.holder, found.key, found.tres) == expected


@given(st.sampled_from(sorted(REASONS)), st.lists(st.sampled_from(sorted(KEYS)), max_size=4))
def test_every_reason_has_an_answer_in_known_codes(word, keys):
    caps = [cap(key, 3, holder=holder) for key in keys for holder in (Holder.QOS, Holder.GROUP)]
    caps += [cap(key, 3, JOBS) for key in keys]
    facts = Facts(trial(*caps, running=(running(1),), nodes=(FreeNode("a100-2", "a100", 4, 64),)))
    found = why(JOB, word, facts)
    assert {one.code for one in found.helps} <= set(CODES)
    assert set(found.unknown) <= set(UNKNOWN)
    named = limit_of(word)
    if named is not None and named.holder is not Holder.PARTITION:
        assert (found.use is None) == ("limit" in found.unknown)


def test_a_limit_of_one_person():
    mine, theirs = running(1, gpus=12, hours=2), running(2, "other", gpus=8)
    urgent = Choice((cap("max_tres_per_user", 8, name="urgent"),), None, 1000)
    closed = Choice((cap("max_jobs_per_user", 0, JOBS, name="closed"),), None, 1)
    caps = (cap("max_tres_per_user", 16),)
    facts = Facts(trial(*caps, running=(mine, theirs), qos={"urgent": urgent, "closed": closed}))
    found = why(JOB, "QOSMaxGRESPerUser", facts)
    assert (found.use.limit, found.use.used, found.use.asked) == (16, 12, 8)
    assert [(one.user, one.own, one.amount) for one in found.users] == [("member", True, 12)]
    assert (found.freed.at, found.freed.amount) == (mine.ends, 12)
    assert found.helps == (
        Help("fewer_gpus", gpus=4, nodes=1),
        Help("other_qos", name="urgent"),
        Help("raise_qos_limit", name="normal"),
    )


def test_a_job_that_is_completing_takes_nothing_of_a_limit():
    jobs = (running(1, gpus=4), running(2, gpus=8, completing=True))
    found = why(JOB, "QOSMaxGRESPerUser", Facts(trial(cap("max_tres_per_user", 8), running=jobs)))
    assert (found.use.used, [one.amount for one in found.users]) == (4, [4])


@pytest.mark.parametrize(("limit", "never"), [(7, True), (8, False)])
def test_a_job_beyond_its_limit_can_never_start(limit, never):
    facts = Facts(trial(cap("max_tres_per_user", limit), running=(running(1),)))
    assert why(JOB, "QOSMaxGRESPerUser", facts).never is never


def test_before_a_reservation_no_other_qos_helps():
    clash = Clash(
        "maint",
        NOW + timedelta(hours=2),
        NOW + timedelta(hours=6),
        is_maintenance=True,
        fits_minutes=100,
    )
    urgent = Choice((), None, 1000)
    facts = Facts(trial(qos={"urgent": urgent}), clash=clash)
    found = why(JOB, "ReqNodeNotAvail, Reserved for maintenance", facts)
    assert found.helps == (Help("shorter", minutes=100),)


def test_only_as_many_jobs_must_end_as_are_enough_the_first_first():
    jobs = tuple(running(n, gpus=2, hours=n) for n in (3, 1, 2))
    facts = Facts(trial(cap("max_tres_per_user", 10), running=jobs))
    freed = why(JOB, "QOSMaxGRESPerUser", facts).freed
    assert [ref.number for ref in freed.refs] == ["1", "2"]
    assert freed.at == NOW + timedelta(hours=2)


def test_whom_one_may_not_see_is_only_counted():
    hidden = running(1, "stranger", gpus=8, seen=False, group="nlp")
    seen = running(2, "colleague", gpus=4)
    rows = (cap("grp_tres", 16, holder=Holder.GROUP, name="nlp", accounts=("nlp",)),)
    found = why(JOB, "AssocGrpGRES", Facts(trial(*rows, running=(hidden, seen))))
    assert [(one.user, one.amount, len(one.refs)) for one in found.users] == [
        ("colleague", 4, 1),
        (None, 8, 0),
    ]
    assert "stranger" not in repr(found)


def test_a_group_above_counts_all_below_it():
    near = cap("grp_tres", 64, holder=Holder.GROUP, name="nlp", accounts=("nlp",))
    far = cap("grp_tres", 16, holder=Holder.GROUP, name="lab", accounts=("lab", "nlp", "bio"))
    jobs = (running(1, "other", gpus=12, group="bio"),)
    found = why(JOB, "AssocGrpGRES", Facts(trial(near, far, running=jobs)))
    assert (found.use.name, found.use.used) == ("lab", 12)


def test_shared_nodes_count_once():
    jobs = (running(1), running(2, nodes=frozenset({"a100-1"})))
    found = why(JOB, "QOSMaxNodePerUserLimit", Facts(trial(cap("max_tres_per_user", 1, "node"),
                                                           running=jobs)))  # fmt: skip
    assert (found.use.used, found.use.asked) == (1, 1)
    assert found.freed.at == NOW + timedelta(hours=1)


def test_run_minutes_are_what_is_left_of_the_time_limits():
    facts = Facts(trial(cap("grp_tres_run_minutes", 4000), running=(running(1, gpus=4, hours=10),)))
    found = why(JOB, "QOSGrpGRESRunMinutes", facts)
    assert (found.use.used, found.use.asked) == (2400, 4800)
    assert found.helps[0] == Help("shorter", minutes=200)


def test_memory_and_decayed_usage_are_said_to_be_unknown():
    mem = why(JOB, "QOSGrpMemLimit", Facts(trial(cap("grp_tres", 1000, "mem"))))
    assert (mem.use.used, mem.unknown) == (None, ("usage", "asked"))
    spent = why(JOB, "QOSGrpGRESMinutes", Facts(trial(cap("grp_tres_minutes", 1000))))
    assert (spent.use.limit, spent.unknown) == (1000, ("usage",))
    assert why(JOB, "QOSMaxGRESPerUser", Facts(trial())).unknown == ("limit",)


def test_jobs_without_an_end_promise_nothing():
    facts = Facts(trial(cap("max_tres_per_user", 8), running=(running(1, ends=None),)))
    found = why(JOB, "QOSMaxGRESPerUser", facts)
    assert (found.freed, found.unknown) == (None, ("end",))


def test_how_many_are_queued():
    facts = Facts(trial(cap("max_submit_per_user", 5, JOBS)), queued=5)
    assert why(JOB, "QOSMaxSubmitJobPerUserLimit", facts).use.used == 5


def test_the_gate_asks_for_credit_and_not_for_a_higher_limit():
    rows = (cap("grp_tres_run_minutes", 10, holder=Holder.GROUP, name="nlp", accounts=("nlp",)),)
    found = why(JOB, "AssocGrpGRESRunMinutes", Facts(trial(*rows, gated=True)))
    assert [one.code for one in found.helps] == ["shorter", "credit"]


def test_resources_say_what_is_free_and_when_enough_is():
    nodes = (FreeNode("a100-1", "a100", 4, 64), FreeNode("a100-2", "a100", 0, 64))
    jobs = (running(1, gpus=4, hours=3), running(2, "other", gpus=8, hours=2))
    found = why(JOB, "Resources", Facts(trial(nodes=nodes, running=jobs)))
    assert (found.space.fitting, found.space.needed, found.space.free_gpus) == (0, 1, 4)
    assert (found.freed.at, [ref.number for ref in found.freed.refs]) == (
        NOW + timedelta(hours=2),
        ["2"],
    )
    assert found.helps == (Help("fewer_gpus", gpus=4, nodes=1, free_now=True),)


def test_a_reservation_ahead_names_the_limit_that_fits():
    clash = Clash("upkeep", NOW, NOW, is_maintenance=True, fits_minutes=160)
    out = (Out("a100-3", "DRAIN", "fan"),)
    found = why(JOB, "ReqNodeNotAvail, Reserved for maintenance",
                Facts(trial(), clash=clash, out=out))  # fmt: skip
    assert (found.key, found.clash, found.out) == ("nodes_unavailable", clash, out)
    assert found.helps == (Help("shorter", minutes=160),)


def test_limits_of_the_partition():
    facts = Facts(trial(max_minutes=60, max_nodes=4, partitions=("long",)))
    found = why(JOB, "PartitionTimeLimit", facts)
    assert (found.use.limit, found.use.asked) == (60, 600)
    assert found.helps == (Help("shorter", minutes=60), Help("other_partition", name="long"))
    wide = replace(facts.trial, shape=replace(SHAPE, nodes=6))
    assert why(JOB, "PartitionNodeLimit", Facts(wide)).helps[0].nodes == 4


@pytest.mark.parametrize(
    ("word", "codes"),
    [
        ("JobHeldUser", ["release"]),
        ("JobHeldAdmin", ["ask_administrator"]),
        ("DependencyNeverSatisfied", ["cancel"]),
        ("BeginTime", []),
        ("Licenses", []),
    ],
)
def test_what_helps_against_the_rest(word, codes):
    assert [one.code for one in why(JOB, word, Facts(trial())).helps] == codes


def test_too_small_a_job_learns_how_much_is_enough():
    found = why(JOB, "QOSMinGRES", Facts(trial(cap("min_tres_per_job", 16))))
    assert found.helps[0] == Help("more", gpus=16, nodes=2)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([key for key, (way, _) in KEYS.items() if way is not Way.LEAST]),
            st.integers(0, 40),
        ),
        max_size=5,
    ),
    st.integers(1, 4),
    st.integers(0, 8),
)
def test_what_is_proposed_breaks_no_known_limit(rows, nodes, per):
    shape = Shape(nodes, per, None, 4 * per, 60)
    tried = trial(*(cap(key, limit) for key, limit in rows), shape=shape, running=(running(1),))
    for word in ("QOSMaxGRESPerUser", "QOSGrpGRES", "QOSMaxGRESPerJob", "QOSMaxGRESPerNode"):
        for one in why(JOB, word, Facts(tried)).helps:
            if one.code == "fewer_gpus":
                smaller = replace(shape, nodes=one.nodes, gpus_per_node=one.gpus // one.nodes)
                assert tried.holds(smaller)
                assert one.gpus < shape.gpus
