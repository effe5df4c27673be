"""Every reason of Slurm 26.05 has a key; what is unknown says so."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.reasons import REASON_KEYS, REASONS, reason_key

RECORDED = Path(__file__).parents[1] / "recorded/slurm-26.05/job_reasons.txt"


def test_the_whole_table_of_libslurm_is_known() -> None:
    recorded = set(RECORDED.read_text().split())
    assert len(recorded) == 216
    assert recorded <= REASONS


@pytest.mark.parametrize(
    ("printed", "key"),
    [
        ("Priority", "priority"),
        ("(Resources)", "resources"),
        ("None", "none"),
        ("900_JobArrayTaskLimit", "array_limit"),
        ("", "none"),
        (None, "none"),
        ("ReqNodeNotAvail, UnavailableNodes:gpu[1-2]", "nodes_unavailable"),
        ("ReqNodeNotAvail(Unavailable:gpu1)", "nodes_unavailable"),
        ("Nodes required for job are DOWN, DRAINED or reserved", "nodes_unavailable"),
        ("launch failed requeued held", "held_after_requeues"),
        ("QOSMaxGRESPerUser", "own_gpus"),
        ("AssocGrpGRES", "group_gpus"),
        ("QOSGrpGRES", "qos_gpus"),
        ("QOSMaxGRESPerJob", "too_large_gpus"),
        ("AssocGrpGRESMinutes", "group_time"),
        ("AssocGrpGRESRunMinutes", "group_gpu_run_time"),
        ("AssocGrpCPURunMinutesLimit", "group_run_time"),
        ("AssocGrpSubmitJobsLimit", "group_submits"),
        ("MaxGRESPerAccount", "group_gpus"),
        ("MaxGRESRunMinsPerUser", "own_time"),
        ("QOSMaxWallDurationPerJobLimit", "too_long"),
        ("JobHeldUser", "held_by_user"),
        ("BeginTime", "begin_time"),
        ("PriorityX", "other"),
        ("Priority_", "other"),
        ("SomethingNew", "other"),
        ("<script>", "other"),
    ],
)
def test_a_reason_gets_a_key(printed: str | None, key: str) -> None:
    assert reason_key(printed) == key


@given(st.text())
def test_any_text_gets_a_known_key(text: str) -> None:
    assert reason_key(text) in REASON_KEYS
