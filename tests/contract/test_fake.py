"""FakeBroker keeps the broker's promises."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

import pytest

from gateway.testing.contracts import BrokerContract, Cast
from gateway.testing.fakebroker import FakeBroker


@dataclass
class FakeContractSite:
    broker: FakeBroker = field(default_factory=FakeBroker)
    cast: Cast = field(default_factory=Cast)

    def now(self) -> datetime:
        return self.broker.now

    def write(self, path: str, owner: str, text: str) -> None:
        self.broker.files.write(path, owner, text)

    def link(self, path: str, owner: str, target: str) -> None:
        self.broker.files.links[path] = target

    def fifo(self, path: str, owner: str) -> None:
        self.broker.files.fifos.add(path)
        self.broker.files.owners[path] = owner

    def until(self, true: Callable[[], bool], seconds: float) -> None:
        for _ in range(int(seconds)):
            if true():
                return
            self.broker.advance(1)
        assert true()

    def end(self, job_id: int) -> None:
        self.broker.finish(job_id)


class TestFakeBroker(BrokerContract):
    @pytest.fixture
    def site(self) -> FakeContractSite:
        return FakeContractSite()
