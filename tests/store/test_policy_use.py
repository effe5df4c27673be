"""What open jobs use of a QoS and of a group, for the pages of policy."""

from gateway.store.queries import policy_use as use
from gateway.store.uow import Begin
from gateway.testing import builders as b


def test_a_job_that_is_completing_uses_nothing_and_an_array_waits_as_its_tasks(
    begin: Begin,
) -> None:
    """Slurm has given back what the one held, though its nodes tidy up."""
    b.add_job(begin, slurm_id=1, state="RUNNING", gpus=4)
    b.add_job(begin, slurm_id=2, state="COMPLETING", gpus=8)
    b.add_job(begin, slurm_id=3, state="PENDING", array_job_id=3, array_tasks=5)
    with begin() as session:
        [of_qos] = use.by_qos(session).values()
        rows = use.of_group(session, "nlp")
    assert (of_qos.running, of_qos.pending, of_qos.gpus) == (1, 5, 4)
    assert sum(row.gpus for row in rows) == 4
    assert sum(row.running for row in rows) == 1
