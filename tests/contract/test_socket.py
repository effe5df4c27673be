"""The promises hold over the real client, the real wire and the real WSGI side."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from test_fake import FakeContractSite

from gateway.brokerclient.client import SocketBroker
from gateway.testing.contracts import BrokerContract
from gateway.testing.devbroker import application_of
from gateway.testing.fakebroker import FakeBroker
from gateway.testing.serving import served


@dataclass
class SocketSite(FakeContractSite):
    fake: FakeBroker | None = None

    def now(self):
        return self.fake.now

    def write(self, path, owner, text):
        self.fake.files.write(path, owner, text)

    def link(self, path, owner, target):
        self.fake.files.links[path] = target

    def fifo(self, path, owner):
        self.fake.files.fifos.add(path)

    def until(self, true, seconds):
        for _ in range(int(seconds)):
            if true():
                return
            self.fake.advance(1)
        assert true()

    def end(self, job_id):
        self.fake.finish(job_id)


class TestOverTheSocket(BrokerContract):
    @pytest.fixture
    def site(self, tmp_path: Path) -> Iterator[SocketSite]:
        fake = FakeBroker()
        with served(application_of(fake, tmp_path), tmp_path / "broker.sock") as path:
            yield SocketSite(broker=SocketBroker(path, 10), fake=fake)
