import pytest

from gateway.broker.failures import SlurmRefused, from_errno
from gateway.core.slurm_errors import Outcome, code, known_numbers, limit_name, outcome
from gateway.errors import BrokerSilent, BrokerUnreachable


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (2000, "invalid_partition"),
        (2002, "access_denied"),
        (2006, "invalid_node_count"),
        (2014, "node_config_unavailable"),
        (2017, "invalid_job_id"),
        (2021, "already_done"),
        (2037, "operation_disabled"),
        (2045, "invalid_account"),
        (2051, "invalid_time_limit"),
        (2066, "invalid_qos"),
        (2073, "job_not_pending"),
        (2012, "text_too_long"),
        (4711, "slurm_refused"),
    ],
)
def test_a_number_has_one_code(number, expected):
    assert outcome(number) is Outcome.REFUSED
    assert code(number) == expected


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("python: error: AssocMaxSubmitJobLimit\n", "association_submit_limit"),
        ("error: AssocGrpSubmitJobsLimit", "group_submit_limit"),
        ("error: QOSMaxSubmitJobPerUserLimit", "qos_submit_limit"),
        ("error: QOSMaxGRESPerUser", "qos_limit"),
        ("error: QOSMaxWallDurationPerJobLimit", "qos_time_limit"),
        ("error: AssocMaxWallDurationPerJobLimit", "association_time_limit"),
        ("error: AssocMaxGRESPerJob", "association_limit"),
        ("", "accounting_policy"),
    ],
)
def test_a_policy_refusal_names_whose_limit_it_was(printed, expected):
    assert code(2050, printed) == expected


def test_what_is_printed_beside_another_refusal_changes_nothing():
    assert code(2066, "error: AssocMaxSubmitJobLimit") == "invalid_qos"
    assert limit_name("Association is fine") is None


@pytest.mark.parametrize("number", [1800, 1001, 1804, 2027, 7000])
def test_when_nobody_was_there_nothing_happened(number):
    assert isinstance(from_errno(number, "away"), BrokerUnreachable)


@pytest.mark.parametrize("number", [1801, 1802, 1002, 1003, 5004, 5005, 104, 32, 0])
def test_after_sending_silence_is_unknown(number):
    assert isinstance(from_errno(number, "?"), BrokerSilent)


def test_a_refusal_carries_slurms_number():
    error = from_errno(2050, "policy", "python: error: AssocMaxSubmitJobLimit")
    assert isinstance(error, SlurmRefused)
    assert (error.code, error.slurm_errno) == ("association_submit_limit", 2050)
    assert "AssocMaxSubmitJobLimit" in str(error)


def test_every_number_is_known_once():
    numbers = known_numbers()
    assert len(numbers) == len(set(numbers)) > 90
