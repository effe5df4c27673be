"""States as Slurm 26.05 prints them; the semantics of cases 4 and 6."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.states import JobState, parse_state, used_nodes

# As libslurm 26.05 names them: base states, then flags.
BASE = (
    "PENDING RUNNING SUSPENDED COMPLETED CANCELLED FAILED TIMEOUT NODE_FAIL PREEMPTED"
    " BOOT_FAIL DEADLINE OUT_OF_MEMORY"
)
FLAGS = (
    "REQUEUED REQUEUE_HOLD SPECIAL_EXIT RESIZING CONFIGURING COMPLETING STOPPED REVOKED"
    " REQUEUE_FED RESV_DEL_HOLD SIGNALING STAGE_OUT EXPEDITING"
)


def test_every_name_of_slurm_is_known() -> None:
    assert {s for s in JobState if s.is_base} == set(BASE.split())
    assert {*BASE.split(), *FLAGS.split(), "UNKNOWN"} == set(JobState)


@pytest.mark.parametrize(
    ("printed", "state", "by"),
    [
        ("CANCELLED by 64030", JobState.CANCELLED, 64030),
        ("CANCELLED", JobState.CANCELLED, None),
        ("CANCELLED+", JobState.CANCELLED, None),
        ("OUT_OF_ME+", JobState.OUT_OF_MEMORY, None),
        ("CO+", JobState.UNKNOWN, None),
        ("COMPLETED,COMPLETING", JobState.COMPLETED, None),
        (["RUNNING", "COMPLETING"], JobState.RUNNING, None),
        (["COMPLETING", "RUNNING"], JobState.RUNNING, None),
        (["PENDING", "REQUEUED"], JobState.PENDING, None),
        (["REQUEUED"], JobState.REQUEUED, None),
        ([], JobState.UNKNOWN, None),
        ("", JobState.UNKNOWN, None),
        ("CANCELLED by root", JobState.CANCELLED, None),
        ("x|COMPLETED|0", JobState.UNKNOWN, None),
    ],
)
def test_reading_a_state(printed: str | list[str], state: JobState, by: int | None) -> None:
    assert parse_state(printed) == (state, by)


@given(st.text() | st.lists(st.text()))
def test_reading_never_raises_and_never_ends_a_job_by_accident(printed: str | list[str]) -> None:
    state, _ = parse_state(printed)
    if state is JobState.UNKNOWN:
        says = (state.is_ended, state.is_active, state.is_pending, state.ends_run)
        assert not any(says)


def test_each_state_is_one_of_pending_active_or_over() -> None:
    for state in set(JobState) - {JobState.UNKNOWN, JobState.REQUEUED}:
        assert [state.is_pending, state.is_active, state.ends_run].count(True) == 1, state


def test_preempted_ends_a_run_and_not_the_job() -> None:
    assert JobState.PREEMPTED.ends_run
    assert not JobState.PREEMPTED.is_ended
    assert JobState.PREEMPTED.may_return


def test_requeued_is_over_in_accounting_and_waits_in_the_queue() -> None:
    assert JobState.REQUEUED.ends_run
    assert JobState.REQUEUED.is_pending
    assert not JobState.REQUEUED.is_ended


def test_a_node_failure_ends_the_job_unless_slurm_requeues_it() -> None:
    assert JobState.NODE_FAIL.is_ended
    assert JobState.NODE_FAIL.may_return
    assert not JobState.FAILED.may_return


def test_without_a_start_nothing_ran() -> None:
    start = datetime(2026, 1, 5, tzinfo=UTC)
    assert not used_nodes(JobState.CANCELLED, None)
    assert not used_nodes(JobState.DEADLINE, None)
    assert used_nodes(JobState.CANCELLED, start)
    assert used_nodes(JobState.PREEMPTED, start)
    assert not used_nodes(JobState.PENDING, start)


def test_only_completed_is_a_success() -> None:
    assert [state for state in JobState if state.succeeded] == [JobState.COMPLETED]
