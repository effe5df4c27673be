import pytest

from gateway.core.limits import partition_refusal, time_limit_refusal


@pytest.mark.parametrize(
    ("current", "wanted", "pending", "most", "refusal"),
    [
        (60, 30, False, 120, None),
        (60, 60, False, 120, None),
        (60, 61, False, 120, "time_limit_raise"),
        (60, 120, True, 120, None),
        (60, 121, True, 120, "time_limit_raise"),
        (60, 9999, True, None, None),
        (None, 5, False, 120, None),
        (60, 0, True, 120, "invalid_time_limit"),
    ],
)
def test_a_limit_goes_down_always_and_up_only_while_waiting(
    current, wanted, pending, most, refusal
):
    found = time_limit_refusal(current=current, wanted=wanted, pending=pending, partition_max=most)
    assert found == refusal


@pytest.mark.parametrize(
    ("nodes", "minutes", "max_nodes", "max_minutes", "refusal"),
    [
        (4, 2880, None, 2880, None),
        (4, 2881, None, 2880, "invalid_time_limit"),
        (5, 60, None, 2880, "invalid_node_count"),
        (3, 60, 2, 2880, "invalid_node_count"),
        (4, 10**6, None, None, None),
    ],
)
def test_a_job_that_could_never_start_is_refused(nodes, minutes, max_nodes, max_minutes, refusal):
    found = partition_refusal(
        nodes=nodes,
        minutes=minutes,
        partition_nodes=4,
        max_nodes=max_nodes,
        max_minutes=max_minutes,
    )
    assert found == refusal
