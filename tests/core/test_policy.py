"""Each field that cannot work has a reason and the nearest value that does."""

from dataclasses import replace

import pytest

from gateway.core.ask import Ask
from gateway.core.durations import parse_time_limit
from gateway.core.policy import CODES, build_offer, judge
from gateway.testing import builders as b
from gateway.testing.template_samples import shipped

DAY = 24 * 60


def manifest(name="ddp"):
    return shipped(name)


def nodes(name="a100", count=4, gpus=8, cpus=64):
    return tuple(
        b.node(f"{name}-{n}", partitions=(name,), gpu_type=name, gpus=gpus, cpus=cpus)
        for n in range(count)
    )


def offer(*, association=None, partition=None, qos=None, others=()):
    return build_offer(
        "member",
        (association or b.association(),),
        (partition or b.partition(), *others),
        (qos or b.qos(), b.qos("spot")),
        nodes(),
    )


ASK = Ask(
    template="ddp",
    group="nlp",
    partition="a100",
    qos="normal",
    nodes="2",
    nproc_per_node="4",
    time_limit="60",
    name="train",
    working_directory="~",
    values={"script": "train.py"},
)
COMMAND = replace(
    ASK, template="command", nproc_per_node="1", values={"command": "true", "gpus_per_node": "1"}
)


def problems(ask, given=None, template="ddp"):
    judged = judge(ask, given or offer(), manifest(template))
    assert {p.code for p in judged.problems if p.field in {"group", "nodes"}} <= set(CODES)
    return {p.field: (p.code, p.nearest) for p in judged.problems}


def capped(minutes):
    return offer(partition=b.partition(max_time_minutes=minutes))


def test_what_works_is_read_back():
    judged = judge(ASK, offer(), manifest())
    assert judged.works
    read = judged.reading
    assert (read.group, read.partition, read.qos) == ("nlp", "a100", "normal")
    assert (read.nodes, read.gpus_per_node, read.gpus, read.cpus_per_task) == (2, 4, 8, 16)
    assert read.time_limit_minutes == 60


def test_only_two_numbers_scale_the_job():
    read = judge(replace(ASK, nodes="4", nproc_per_node="8"), offer(), manifest()).reading
    assert (read.gpus, read.cpus_per_task) == (32, 32)


@pytest.mark.parametrize(
    ("typed", "minutes", "under_24", "under_48"),
    [
        ("90", 90, True, True),
        ("30:00", 30, True, True),
        ("1:30", 2, True, True),
        ("2-12", 3600, False, False),
        ("2-12:30", 3630, False, False),
        ("48:00:00", 2880, False, True),
        ("48:00:01", 2881, False, False),
        ("24:00:00", 1440, True, True),
    ],
)
def test_a_time_limit_against_its_cap(typed, minutes, under_24, under_48):
    """Case 2."""
    for hours, works in ((24, under_24), (48, under_48)):
        judged = judge(replace(ASK, time_limit=typed), capped(hours * 60), manifest())
        assert judged.reading.time_limit_minutes == minutes
        assert judged.works is works
        for problem in judged.problems:
            assert (problem.field, problem.code) == ("time_limit", "time_limit_above_cap")
            assert problem.facts == {"max": hours * 60, "minutes": minutes, "by": "partition"}
            assert parse_time_limit(problem.nearest) == hours * 60


@pytest.mark.parametrize("typed", ["0", "UNLIMITED", "-1"])
def test_no_limit_is_refused_whatever_the_cap(typed):
    """Case 2: `0` would be "no limit" to Slurm."""
    for cap in (DAY, None):
        found = problems(replace(ASK, time_limit=typed), capped(cap))
        assert found == {"time_limit": ("time_limit_none", None)}


def test_without_any_cap_a_long_time_works():
    assert problems(replace(ASK, time_limit="30-0"), capped(None)) == {}


def test_the_narrowest_cap_is_named():
    by_qos = offer(qos=b.qos(max_wall_minutes=120))
    judged = judge(replace(ASK, time_limit="180"), by_qos, manifest())
    assert judged.problems[0].facts["by"] == "qos"
    by_group = offer(association=b.association(max_wall_minutes=120))
    judged = judge(replace(ASK, time_limit="180"), by_group, manifest())
    assert judged.problems[0].facts["by"] == "group"


def test_a_limit_of_the_qos_goes_before_the_groups():
    given = offer(association=b.association(max_wall_minutes=60), qos=b.qos(max_wall_minutes=120))
    assert problems(replace(ASK, time_limit="120"), given) == {}


def test_a_qos_may_lift_the_partitions_cap():
    lifting = b.qos(max_wall_minutes=3 * DAY, flags=("PartitionTimeLimit",))
    given = offer(partition=b.partition(max_time_minutes=DAY), qos=lifting)
    assert problems(replace(ASK, time_limit="2-0"), given) == {}


def test_more_gpus_than_a_node_has():
    found = problems(replace(ASK, nproc_per_node="9"))
    assert found == {"nproc_per_node": ("gpus_per_node_above_node", "8")}


def test_more_gpus_than_a_node_has_where_they_are_chosen():
    wanted = replace(COMMAND, values={"command": "true", "gpus_per_node": "9"})
    found = problems(wanted, template="command")
    assert found == {"gpus_per_node": ("gpus_per_node_above_node", "8")}


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"max_gpus_per_job": 4}, "gpus_above_job_limit"),
        ({"max_gpus_per_user": 4}, "gpus_above_user_limit"),
        ({"max_gpus_per_group": 4}, "gpus_above_group_limit"),
    ],
)
def test_more_gpus_than_the_qos_allows(given, code):
    limited = offer(qos=b.qos(**given))
    assert problems(ASK, limited) == {"nodes": (code, "1")}
    assert problems(replace(ASK, nodes="1"), limited) == {}


def test_more_gpus_than_the_group_may_hold():
    limited = offer(association=b.association(group_max_gpus=6))
    assert problems(ASK, limited) == {"nodes": ("gpus_above_group_limit", "1")}


def test_a_node_that_is_already_too_much_is_told_at_the_gpus():
    limited = offer(qos=b.qos(max_gpus_per_job=2))
    assert problems(replace(ASK, nodes="1"), limited) == {
        "nproc_per_node": ("gpus_above_job_limit", "2")
    }


def test_where_both_numbers_are_too_large_both_say_so():
    limited = offer(qos=b.qos(max_gpus_per_job=1))
    assert problems(ASK, limited) == {
        "nproc_per_node": ("gpus_above_job_limit", "1"),
        "nodes": ("gpus_above_job_limit", "1"),
    }


def test_no_gpus_at_all_has_no_nearest():
    limited = offer(qos=b.qos(max_gpus_per_job=0))
    assert problems(replace(ASK, nodes="1"), limited)["nproc_per_node"] == (
        "gpus_above_job_limit",
        None,
    )


def test_more_nodes_than_the_partition():
    assert problems(replace(ASK, nodes="5")) == {"nodes": ("nodes_above_partition", "4")}
    limited = offer(partition=b.partition(max_nodes=1))
    assert problems(ASK, limited) == {"nodes": ("nodes_above_partition", "1")}


def test_more_cpus_than_a_node_has():
    given = build_offer(
        "member", (b.association(),), (b.partition(),), (b.qos(),), nodes(gpus=16, cpus=32)
    )
    found = problems(replace(ASK, nproc_per_node="9"), given)
    assert found == {"nproc_per_node": ("cpus_above_node", "8")}


@pytest.mark.parametrize("state", ["DOWN", "DRAIN", "INACTIVE"])
def test_a_closed_partition_names_an_open_one(state):
    other = b.partition("rtx4090")
    given = offer(partition=b.partition(state=state), others=(other,))
    assert problems(ASK, given) == {"partition": ("partition_down", "rtx4090")}


def test_gpus_in_a_partition_without_any():
    given = build_offer("member", (b.association(),), (b.partition("cpu"),), (b.qos(),), ())
    found = problems(replace(ASK, partition="cpu"), given)
    assert found["partition"] == ("partition_without_gpus", None)
    none = replace(COMMAND, partition="cpu", values={"command": "true", "gpus_per_node": "0"})
    assert problems(none, given, "command") == {}


def test_a_gpu_type_of_another_partition():
    found = problems(replace(ASK, gpu_type="h100"))
    assert found == {"gpu_type": ("gpu_type_not_there", "a100")}


@pytest.mark.parametrize("group", ["vision", "x'; touch pwned; '", "nlp\n", ""])
def test_a_group_that_is_not_the_persons(group):
    code = "group_not_yours" if group else "required"
    assert problems(replace(ASK, group=group)) == {"group": (code, "nlp")}


def test_a_group_and_a_qos_in_capitals_are_the_same_to_slurm():
    read = judge(replace(ASK, group="NLP", qos="Normal"), offer(), manifest())
    assert (read.reading.group, read.reading.qos) == ("nlp", "normal")


def test_a_partition_in_capitals_is_another_one():
    assert problems(replace(ASK, partition="A100")) == {
        "partition": ("partition_not_allowed", "a100")
    }


def test_a_qos_that_this_group_does_not_have():
    assert problems(replace(ASK, qos="urgent")) == {"qos": ("qos_not_allowed", "normal")}


def test_nobody_without_an_association_gets_a_job():
    given = build_offer("member", (), (b.partition(),), (b.qos(),), nodes())
    assert problems(ASK, given) == {"group": ("group_not_yours", None)}


@pytest.mark.parametrize(
    ("typed", "code", "nearest"),
    [
        ("", "required", "1"),
        ("two", "not_an_integer", "1"),
        ("２", None, None),
        ("1.5", "not_an_integer", "1"),
        ("-1", "not_an_integer", "1"),
        ("0", "too_small", "1"),
        ("65", "too_big", "64"),
        ("9999999", "not_an_integer", "1"),
    ],
)
def test_numbers(typed, code, nearest):
    expected = {"nodes": (code, nearest)} if code else None
    found = problems(replace(ASK, nodes=typed))
    assert found == (expected or {"nodes": ("not_an_integer", "1")})


def test_every_field_is_judged_at_once():
    wanted = replace(
        ASK, nodes="x", time_limit="", name="", working_directory="", values={}, qos="none"
    )
    assert set(problems(wanted)) == {
        "nodes",
        "time_limit",
        "name",
        "working_directory",
        "script",
        "qos",
    }


@pytest.mark.parametrize(
    ("typed", "code", "nearest"),
    [
        ("~", None, None),
        ("~/runs", None, None),
        ("/home/member/实验", None, None),
        ("", "required", "~"),
        ("runs", "folder_not_absolute", "~/runs"),
        ("~other/x", "folder_not_absolute", "~/~other/x"),
        ("/home/../etc", "folder_parent", None),
        ("/home/a~b", "folder_parent", None),
        ("/home/a b", "folder_characters", None),
        ("/home/$(id)", "folder_characters", None),
        ("/home/a\n", "folder_characters", None),
        ("/" + "x" * 1100, "folder_too_long", None),
    ],
)
def test_folders(typed, code, nearest):
    expected = {"working_directory": (code, nearest)} if code else {}
    assert problems(replace(ASK, working_directory=typed)) == expected


def test_a_name_that_is_no_name_offers_one_that_is():
    assert problems(replace(ASK, name="my run/1")) == {"name": ("name_characters", "my-run-1")}
    assert problems(replace(ASK, name="🚀")) == {"name": ("name_characters", None)}


def test_the_nearest_value_works():
    limited = offer(qos=b.qos(max_gpus_per_user=12, max_wall_minutes=90))
    wanted = replace(ASK, nodes="4", time_limit="1-0")
    fields = {p.field: p.nearest for p in judge(wanted, limited, manifest()).problems}
    assert judge(replace(wanted, **fields), limited, manifest()).works


def test_gpus_a_node_that_are_no_number_stand_at_their_field():
    wrong = replace(COMMAND, values={"command": "true", "gpus_per_node": "many"})
    assert problems(wrong, template="command") == {"gpus_per_node": ("not_an_integer", "1")}


def test_a_gpu_type_is_the_partitions_own():
    read = judge(replace(ASK, gpu_type="a100"), offer(), manifest()).reading
    assert read.gpu_type == "a100"
    bare = build_offer("member", (b.association(),), (b.partition(),), (b.qos(),), ())
    typed = problems(replace(ASK, gpu_type="h100"), bare)
    assert typed["partition"] == ("partition_without_gpus", None)
    assert "gpu_type" not in typed
