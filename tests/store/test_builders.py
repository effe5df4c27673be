from gateway.store.uow import Begin
from gateway.testing.samples import fill


def test_the_sample_store_can_be_made(begin: Begin) -> None:
    made = fill(begin)

    assert {"member", "admin", "RUNNING", "queued"} <= made.keys()
