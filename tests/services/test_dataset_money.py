"""A dataset that was not there when the job began costs nothing; a program's own 65 does."""

from datetime import timedelta

import pytest

from gateway.core.credits import MILLION
from gateway.services import credit, settle
from gateway.store import datasets
from gateway.store.uow import Begin
from gateway.testing import builders as b
from gateway.testing.dataset_samples import add_dataset, add_version
from gateway.testing.money import balance, one_credit_an_hour


def settled(begin: Begin, *, seconds: int, code: int, uses: bool) -> int:
    """The balance of a group with 100 after the only run of a job that failed."""
    one_credit_an_hour(begin)
    credit.top_up("nlp", 100 * MILLION, begin=begin, now=b.NOW - timedelta(days=30))
    person = b.add_person(begin)
    job = b.add_job(begin, state="FAILED", token="token-1")
    submission = b.add_submission(begin, person, job_id=job, state="accepted")
    dataset = add_dataset(begin, person, created_at=b.NOW)
    version = add_version(begin, dataset, person, created_at=b.NOW, published_at=b.NOW)
    with begin() as session:
        datasets.add_uses(session, submission, [version] if uses else [])
    b.add_run(
        begin,
        job,
        state="FAILED",
        exit_code=code,
        start_time=b.NOW - timedelta(seconds=seconds),
        elapsed_seconds=seconds,
        alloc_tres="cpu=4,gres/gpu=2,gres/gpu:a100=2",
        to_settle=True,
    )
    settle.settle(begin=begin, now=b.NOW)
    return balance(begin, "nlp")


@pytest.mark.parametrize(
    ("seconds", "code", "uses", "free"),
    [(60, 65, True, True), (60, 1, True, False), (60, 65, False, False), (900, 65, True, False)],
)
def test_only_a_start_that_a_dataset_stopped_is_given_back(
    begin: Begin, seconds: int, code: int, uses: bool, free: bool
) -> None:
    left = settled(begin, seconds=seconds, code=code, uses=uses)
    assert (left == 100 * MILLION) is free
