"""slurmdbd and the broker stop, freeze and are killed under writes of policy."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from broker_fixture import BrokerProcess, own_broker
from policy_hands import blows, until_answered

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

    _answers_under(kill, own.client(), until={"unknown", "nothing"})


def test_whenever_the_broker_is_killed_the_answer_is_true(own: BrokerProcess) -> None:
    _answers_under(own.kill_workers, own.client(), until={"unknown"})


def _answers_under(blow: Callable[[], None], client: SocketBroker, *, until: set[str]) -> None:
    """Writes one by one while blows fall, until one of them hit; after each, Slurm has what its
    answer says."""
    now = made(client, Qos(name=fresh_name()))
    end = time.monotonic() + 60
    answer = "done"
    with blows(blow):
        while answer not in until:
            assert time.monotonic() < end
            answer, now = _checked(client, now)
    assert _settled(client, now.name) == now
    assert _checked(client, now)[0] == "done"


def _checked(client: SocketBroker, now: Qos) -> tuple[str, Qos]:
    wanted = replace(now, priority=now.priority + 1)
    answer, believed = _written(client, now, wanted)
    found = _settled(client, now.name)
    assert found in believed, answer
    return answer, found


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
    return until_answered(lambda: qos_now(client, name))
