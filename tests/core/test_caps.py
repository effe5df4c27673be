"""Limits as rows: precedence, what a job asks, and what can never start."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.core.caps import KEYS, Cap, Holder, Level, Shape, amount, breaks, caps_of, never
from gateway.core.qos import FIELDS, GROUP_FIELDS, GroupPolicy, tres
from gateway.testing import builders as b

SHAPE = Shape(nodes=2, gpus_per_node=4, gpu_type=None, cpus=16, minutes=60)


def cap(key, limit, resource="gres/gpu", holder=Holder.QOS):
    return Cap(holder, "normal", key, resource, limit)


def found(caps):
    return {(one.holder.value, one.key, one.tres): one.limit for one in caps}


def test_each_key_is_a_field_of_policy():
    known = {field.key for field in (*FIELDS, *GROUP_FIELDS)}
    assert set(KEYS) - known == {"own_grp_tres"}


def test_the_qos_goes_before_the_association_for_each_resource_by_itself():
    level = b.qos(max_tres_per_job=tres({"gres/gpu": 8}), max_jobs_per_user=2)
    association = b.association(
        max_tres_per_job=tres({"gres/gpu": 4, "cpu": 64}), max_jobs=1, max_submit_jobs=9
    )
    assert found(caps_of(level, association)) == {
        ("qos", "max_tres_per_job", "gres/gpu"): 8,
        ("qos", "max_jobs_per_user", "jobs"): 2,
        ("group", "max_tres_per_job", "cpu"): 64,
        ("group", "max_submit_jobs", "jobs"): 9,
    }


def test_groups_above_limit_as_well():
    own = Level(GroupPolicy(name="nlp", grp_jobs=3), frozenset({"nlp"}))
    above = Level(GroupPolicy(name="lab", grp_tres=tres({"cpu": 99})), frozenset({"lab", "nlp"}))
    caps = caps_of(b.qos(), None, (own, above))
    assert [(one.name, one.key, one.limit) for one in caps] == [
        ("nlp", "grp_jobs", 3),
        ("lab", "grp_tres", 99),
    ]


def test_a_job_without_a_type_asks_for_none_of_a_type():
    """Slurm lets it pass a limit of one type: refusing it would refuse what runs."""
    assert amount("gres/gpu:a100", SHAPE) == 0
    typed = Shape(2, 4, "a100", 16, 60)
    assert amount("gres/gpu:a100", typed) == 8
    assert amount("gres/gpu:h100", typed) == 0


def test_what_is_not_known_breaks_nothing():
    assert not breaks(cap("max_tres_per_job", 1, "mem"), SHAPE)
    assert not breaks(cap("max_tres_per_job", 1, "cpu"), Shape(2, 4, None, None, 60))


def test_each_way_of_comparing():
    tight = {
        "max_tres_per_job": 7,
        "max_tres_per_node": 3,
        "max_tres_minutes_per_job": 479,
        "max_wall_minutes": 59,
        "max_tres_per_user": 7,
        "grp_tres_run_minutes": 479,
        "max_jobs": 0,
        "grp_tres_minutes": 0,
    }
    for key, limit in tight.items():
        assert breaks(cap(key, limit), SHAPE), key
        assert not breaks(cap(key, limit + 1), SHAPE), key
    assert breaks(cap("min_tres_per_job", 9), SHAPE)
    assert not breaks(cap("min_tres_per_job", 8), SHAPE)


@given(
    st.sampled_from(sorted(KEYS)),
    st.integers(0, 100),
    st.integers(0, 100),
    st.integers(1, 8),
    st.integers(1, 8),
)
def test_more_use_never_makes_room(key, limit, used, nodes, per):
    shape, one = Shape(nodes, per, None, per * 4, 60), cap(key, limit)
    if breaks(one, shape):
        assert breaks(one, shape, used)
        assert one in never([one], shape)
