import pytest

from gateway.broker.checks import check_submit, parse_signal
from gateway.broker.sbatch import arguments
from gateway.errors import BrokerRefused
from gateway.testing.contracts import Cast, request

CAST = Cast()


def test_an_ordinary_request_is_fine():
    check_submit(request(CAST, name="é 😀", signal="B:USR1@120", memory_mb_per_node=1000))
    for array in ("0", "0-9", "0-999%10"):
        check_submit(request(CAST, array=array))


@pytest.mark.parametrize(
    ("code", "changes"),
    [
        ("bad_token", {"token": "../../etc/passwd"}),
        ("bad_token", {"token": "a" * 65}),
        ("bad_name", {"name": ""}),
        ("bad_name", {"name": "demo\n#SBATCH --account=richgroup\nid > out"}),
        ("bad_name", {"name": "demo\rid"}),
        ("bad_name", {"name": "demo\u2028id"}),
        ("bad_name", {"name": "demo\0"}),
        ("bad_name", {"name": "\udcff"}),
        ("bad_name", {"name": "é" * 101}),
        ("invalid_account", {"account": "x'; touch pwned; '"}),
        ("invalid_account", {"account": "nlp,biolab"}),
        ("invalid_account", {"account": "--uid=0"}),
        ("invalid_qos", {"qos": ""}),
        ("invalid_partition", {"partition": "a100 debug"}),
        ("invalid_gres", {"gpu_type": "a100:8,license"}),
        ("invalid_gres", {"gpus_per_node": -1}),
        ("invalid_node_count", {"nodes": 0}),
        ("invalid_cpu_count", {"cpus_per_task": 0}),
        ("invalid_time_limit", {"time_limit_minutes": 0}),
        ("invalid_time_limit", {"time_limit_minutes": 2**31}),
        ("invalid_memory", {"memory_mb_per_node": 0}),
        ("bad_path", {"working_directory": "relative"}),
        ("bad_path", {"output": "/home/x\n/y"}),
        ("bad_path", {"output": "/" + "x" * 2000}),
        ("invalid_array", {"array": ""}),
        ("invalid_array", {"array": "1-3"}),
        ("invalid_array", {"array": "0-3%0"}),
        ("invalid_array", {"array": "0-3,7"}),
        ("invalid_array", {"array": "0-3\n"}),
        ("invalid_array", {"array": "0-3 --uid=0"}),
        ("invalid_node_name", {"on_nodes": ""}),
        ("invalid_node_name", {"on_nodes": "a100-[1-2]"}),
        ("invalid_node_name", {"on_nodes": "a100-1,"}),
        ("invalid_node_name", {"on_nodes": "a100-1\n"}),
        ("invalid_node_name", {"on_nodes": "--uid=0"}),
        ("script_without_shebang", {"script": " #!/bin/sh\n"}),
        ("script_without_shebang", {"script": "\ufeff#!/bin/sh\n"}),
        ("script_without_shebang", {"script": "   \n"}),
        ("script_with_nul", {"script": "#!/bin/sh\n\0"}),
        ("script_with_carriage_return", {"script": "#!/bin/sh\necho\r"}),
        ("script_not_text", {"script": "#!/bin/sh\n\udcff"}),
        ("script_too_large", {"script": "#!/bin/sh\n" + "#" * 2**22}),
        ("bad_signal", {"signal": "NOSUCH@60"}),
        ("bad_signal", {"signal": "USR1@60; id"}),
        ("bad_signal", {"signal": "USR1@65536"}),
        ("bad_signal", {"signal": "0@60"}),
        ("bad_signal", {"signal": "99999999999@60"}),
    ],
)
def test_what_is_refused_before_slurm_hears_of_it(code, changes):
    with pytest.raises(BrokerRefused) as caught:
        check_submit(request(CAST, **changes))
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("text", "number", "seconds", "batch"),
    [
        ("B:USR1@120", 10, 120, True),
        ("SIGTERM", 15, 60, False),
        ("12@5", 12, 5, False),
        ("RB:USR2@9", 12, 9, True),
    ],
)
def test_a_signal_is_read_as_sbatch_reads_it(text, number, seconds, batch):
    found = parse_signal(text)
    assert (found["signal"], found["time"], found["batch_only"]) == (number, seconds, batch)


def test_a_value_cannot_be_an_option_of_its_own():
    words = arguments(
        request(CAST, name="--uid=0", gpu_type=None, memory_mb_per_node=5, array="0-3%2")
    )
    assert words[0] == "sbatch"
    assert "--job-name=--uid=0" in words
    assert "--gpus-per-node=1" in words
    assert "--mem=5M" in words
    assert "--array=0-3%2" in words
    assert all(word.startswith("--") for word in words[1:])
