"""pyslurm's objects as messages; stand-ins with the attributes that pyslurm 25.11 has."""

from types import SimpleNamespace

import pytest

from gateway.broker.reads import node, partition, queue_job


def gpu(count, kind=None):
    return SimpleNamespace(count=count, type=kind)


def tres(**gres):
    return SimpleNamespace(gres={name.replace("__", ":"): item for name, item in gres.items()})


class Job(SimpleNamespace):
    def __init__(self, **changes):
        base = {
            "id": 7,
            "user_id": 2002,
            "name": "train",
            "account": "nlp",
            "partition": "a100",
            "qos": "normal",
            "state": "RUNNING",
            "state_reason": "None",
            "submit_time": 1_767_222_000,
            "eligible_time": 1_767_222_000,
            "start_time": 1_767_225_600,
            "end_time": 1_767_247_200,
            "time_limit": 480,
            "num_nodes": 2,
            "cpus": 16,
            "requested_tres": tres(gpu=gpu(8), gpu__a100=gpu(8, "a100")),
            "allocated_tres": tres(gpu=gpu(8), gpu__a100=gpu(8, "a100")),
            "allocated_nodes": "a100-[1-2]",
            "scheduled_nodes": "a100-[3-4]",
            "priority": 100,
            "requeue_count": 0,
            "exit_code": 0,
            "exit_code_signal": 0,
            "working_directory": "/home/nlp-1",
            "standard_output": "/home/nlp-1/o-7.log",
            "comment": "sluice:abc",
            "array_id": None,
            "array_task_id": None,
            "array_tasks_waiting": None,
        }
        super().__init__(**{**base, **changes})


def read(**changes):
    return queue_job(Job(**changes), lambda uid: f"user{uid}")


def test_a_running_job():
    job = read()
    assert (job.user, job.nodes, job.gpus, job.gpu_type) == ("user2002", 2, 8, "a100")
    assert job.start_time is not None
    assert (job.estimated_start, job.reason, job.exit_code) == (None, None, None)


def test_a_waiting_job_has_a_guess_and_no_start():
    job = read(state="PENDING", state_reason="Priority", allocated_tres=None, allocated_nodes=None)
    assert (job.start_time, job.end_time, job.node_list) == (None, None, None)
    assert (job.estimated_start is not None, job.planned_nodes) == (True, "a100-[3-4]")
    assert read().planned_nodes is None  # what was once planned for it
    assert (job.gpus, job.reason) == (8, "Priority")


def test_an_ended_job_says_how():
    job = read(state="FAILED", exit_code=0, exit_code_signal=9)
    assert (job.exit_code, job.exit_signal) == (0, 9)


def test_no_limit_is_none_and_so_is_a_priority_that_nobody_set():
    job = read(time_limit=None, priority=None)
    assert (job.time_limit_minutes, job.priority) == (None, None)


@pytest.mark.parametrize(
    ("gres", "total", "kind"),
    [
        ({"gpu__a100": gpu(2, "a100")}, 2, "a100"),
        ({"gpu": gpu(3), "gpu__a100": gpu(2, "a100"), "gpu__v100": gpu(1, "v100")}, 3, None),
        ({"gpu": gpu(4), "gpu__a100": gpu(2, "a100")}, 4, None),
        ({}, 0, None),
    ],
)
def test_gpus_are_counted_once(gres, total, kind):
    job = read(allocated_tres=tres(**gres), requested_tres=tres(**gres))
    assert (job.gpus, job.gpu_type) == (total, kind)


def test_what_was_given_is_not_what_was_asked_for():
    job = read(requested_tres=tres(gpu=gpu(8)))
    assert (job.gpu_type, job.req_gpu_type) == ("a100", None)
    assert read(allocated_tres=None, state="PENDING").req_gpu_type == "a100"
    assert read(requested_tres=None).req_gpu_type is None


@pytest.mark.parametrize(
    ("array_id", "task", "waiting", "expected"),
    [
        (None, None, None, (None, None, None)),
        (900, None, "60-89,91-94,96-98", (900, None, 37)),
        (900, None, "1,3,5,7,...", (900, None, None)),
        (900, 12, None, (900, 12, None)),
        (900, None, None, (900, 0, None)),  # pyslurm reads task 0 as "none"
        (900, None, "0x1F", (900, None, None)),
    ],
)
def test_arrays(array_id, task, waiting, expected):
    job = read(array_id=array_id, array_task_id=task, array_tasks_waiting=waiting)
    assert (job.array_job_id, job.array_task, job.array_tasks) == expected


def test_one_name_that_is_no_text_hides_nothing():
    class Broken(Job):
        @property
        def name(self):
            raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")

        @name.setter
        def name(self, value):
            pass

    assert queue_job(Broken(), str).name == "\ufffd"


def test_a_node_and_its_partition():
    found = SimpleNamespace(
        name="a100-1",
        state="MIXED+DRAIN",
        reason="fan",
        partitions=["a100"],
        effective_cpus=32,
        allocated_cpus=8,
        real_memory=512_000,
        configured_gres={"gpu:a100": 8},
        allocated_gres={"gpu:a100": 2},
        address="10.0.0.7",
    )
    read_node = node(found)
    assert (read_node.gpus, read_node.gpus_used, read_node.gpu_type) == (8, 2, "a100")
    assert (read_node.state, read_node.reason, read_node.cpus_used) == ("MIXED+DRAIN", "fan", 8)
    assert read_node.address == "10.0.0.7"
    part = SimpleNamespace(
        name="a100",
        state="UP",
        is_default=True,
        total_nodes=4,
        max_time="UNLIMITED",
        default_time=60,
        max_nodes="UNLIMITED",
        allowed_accounts=["ALL"],
        denied_accounts=["ALL"],
        allowed_qos=["normal", "spot"],
        denied_qos=[],
    )
    read_part = partition(part, (read_node,))
    assert (read_part.max_time_minutes, read_part.max_nodes) == (None, None)
    assert (read_part.allow_accounts, read_part.deny_accounts) == ((), ())
    assert (read_part.allow_qos, read_part.gpu_types) == (("normal", "spot"), ("a100",))


def test_the_output_of_a_record_for_many_tasks_has_no_task_in_its_name():
    name = "/home/nlp-1/sweep-2_4294967294.out"
    many = read(array_id=2, array_tasks_waiting="0-2%2", standard_output=name)
    assert many.output == "/home/nlp-1/sweep-2_%a.out"
    one = read(array_id=2, array_task_id=1, standard_output="/home/nlp-1/sweep-2_1.out")
    assert one.output == "/home/nlp-1/sweep-2_1.out"
    assert read(standard_output=name).output == name
