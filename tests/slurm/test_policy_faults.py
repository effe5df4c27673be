"""slurmdbd and the broker stop, freeze and are killed under writes of policy."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from broker_fixture import BrokerProcess, own_broker

from contrib.devcluster.instance import Instance
from gateway.brokerclient.client import SocketBroker
from gateway.core.qos import Qos
from gateway.errors import BrokerSilent, BrokerUnreachable
from gateway.testing.contract_policy import fresh_name, made, qos_now
from gateway.wire import policy as p

pytestmark = pytest.mark.slurm


@pytest.fixture
def own(cluster: Instance, tidy: None) -> Iterator[BrokerProcess]:
    with own_broker(cluster, SLUICE_BROKER_KILL_TIMEOUT_SECONDS="4") as process:
        yield process


@pytest.mark.parametrize(("gone", "back"), [("stop", "start"), ("freeze", "thaw")])
def test_without_slurmdbd_nothing_is_begun(
    cluster: Instance, own: BrokerProcess, gone: str, back: str
) -> None:
    client = own.client()
    seen = made(client, Qos(name=fresh_name()))
    cluster.daemon("slurmdbd", gone)
    try:
        with pytest.raises(BrokerUnreachable):
            client.set_qos(p.SetQos(seen, replace(seen, priority=5)))
    finally:
        cluster.daemon("slurmdbd", back)
    assert _settled(client, seen.name) == seen


def test_whenever_slurmdbd_is_killed_the_answer_is_true(
    cluster: Instance, own: BrokerProcess
) -> None:
    def kill() -> None:
        cluster.daemon("slurmdbd", "kill")
        cluster.daemon("slurmdbd", "start")

    assert _answers_under(kill, own.client()) >= {"done"}


def test_whenever_the_broker_is_killed_the_answer_is_true(own: BrokerProcess) -> None:
    assert _answers_under(own.kill_workers, own.client()) >= {"done", "unknown"}


def _answers_under(blow: Callable[[], None], client: SocketBroker) -> set[str]:
    """Writes one by one while blows fall; after each, Slurm has what its answer says."""
    now = made(client, Qos(name=fresh_name()))
    over = threading.Event()

    def blows() -> None:
        for pause in (0.05, 0.11, 0.17, 0.23, 0.31):
            time.sleep(pause)
            blow()
        over.set()

    answers = []
    with ThreadPoolExecutor(1) as pool:
        falling = pool.submit(blows)
        while not over.is_set():
            wanted = replace(now, priority=now.priority + 1)
            answer, believed = _written(client, now, wanted)
            found = _settled(client, now.name)
            assert found in believed, answer
            now = found
            answers.append(answer)
        falling.result()
    return set(answers)


def _written(client: SocketBroker, now: Qos, wanted: Qos) -> tuple[str, tuple[Qos, ...]]:
    """The answer, and what Slurm may have after it."""
    try:
        assert client.set_qos(p.SetQos(now, wanted)) == wanted
    except BrokerSilent:
        return "unknown", (now, wanted)
    except BrokerUnreachable:
        return "nothing", (now,)
    return "done", (wanted,)


def _settled(client: SocketBroker, name: str) -> Qos:
    end = time.monotonic() + 20
    while time.monotonic() < end:
        time.sleep(0.05)  # a sacctmgr whose broker was killed may still be on its way
        try:
            return qos_now(client, name)
        except (BrokerUnreachable, BrokerSilent):
            continue
    raise AssertionError("nobody answers")
