"""What must hold when something breaks between a request and Slurm. Each of these tests stops,
freezes or kills a real process, which is why they take seconds."""

import contextlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from broker_fixture import own_broker

from gateway.errors import BrokerSilent, BrokerUnreachable
from gateway.testing.contracts import Cast, Steps, request

pytestmark = pytest.mark.slurm
STEPS = Steps()
CAST = Cast()

# Python runs this before the broker. It kills the worker when Slurm has said yes and the
# broker is about to read the job back.
KILL_AFTER_YES = """
import os, pathlib, signal
from gateway.broker.driver import Driver
submit = Driver.submit
def once(self, account, request):
    job_id = submit(self, account, request)
    flag = pathlib.Path("/run/sluice/kill-after-yes")
    if flag.exists():
        flag.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    return job_id
Driver.submit = once
"""


@contextlib.contextmanager
def frozen(cluster):
    cluster.daemon("slurmctld", "freeze")
    try:
        yield
    finally:
        cluster.daemon("slurmctld", "thaw")


def ago(**span):
    return datetime.now(UTC) - timedelta(**span)


def jobs_with(broker, asked):
    return [job for job in broker.queue().jobs if job.comment == f"sluice:{asked.token}"]


def find_in_time(site, broker, asked):
    """A caller looks with growing pauses; 20 s here."""
    found = []

    def seen():
        job = broker.find(asked.token, user=asked.user, since=ago(hours=1))
        found.append(job)
        return job is not None

    site.until(seen, 20)
    return found[-1]


def test_a_broker_killed_after_slurms_yes_leaves_one_job_that_is_found(cluster, cluster_site):
    inject = cluster.folders.run / "inject"
    inject.mkdir(exist_ok=True)
    (inject / "sitecustomize.py").write_text(KILL_AFTER_YES)
    with own_broker(cluster, PYTHONPATH="/run/sluice/inject:/opt/sluice") as process:
        broker, asked = process.client(), request(CAST)
        (cluster.folders.run / "kill-after-yes").touch()
        with pytest.raises(BrokerSilent):
            broker.submit(asked)
        found = find_in_time(cluster_site, broker, asked)
        assert [job.job_id for job in jobs_with(broker, asked)] == [found.job_id]
        # Sending it again gives that job, and makes no second one.
        assert broker.submit(asked).job_id == found.job_id
        assert len(jobs_with(broker, asked)) == 1
        STEPS.cancel(cluster_site, found)


def test_killed_workers_come_back(cluster, cluster_site):
    with own_broker(cluster) as process:
        process.kill_workers()
        cluster_site.until(lambda: _answers(process), 10)


def _answers(process):
    with contextlib.suppress(BrokerSilent, BrokerUnreachable):
        return bool(process.client(5).partitions())
    return False


def test_a_stopped_slurmctld_means_that_nothing_happened(cluster, cluster_site, broker):
    asked = request(CAST)
    cluster.daemon("slurmctld", "stop")
    try:
        with pytest.raises(BrokerUnreachable):
            broker.submit(asked)
        with pytest.raises(BrokerUnreachable):
            # Half an answer is no answer: the queue was not asked.
            broker.find(asked.token, user=asked.user, since=ago(hours=1))
    finally:
        cluster.daemon("slurmctld", "start")
    cluster_site.until(lambda: _reachable(broker), 20)
    assert broker.find(asked.token, user=asked.user, since=ago(hours=1)) is None
    job = broker.submit(asked)
    assert len(jobs_with(broker, asked)) == 1
    STEPS.cancel(cluster_site, job)


def _reachable(broker):
    with contextlib.suppress(BrokerSilent, BrokerUnreachable):
        return bool(broker.queue())
    return False


def test_a_submit_that_slurmctld_slept_through_is_unknown_and_then_found_once(
    cluster, cluster_site, broker
):
    asked = request(CAST)
    with frozen(cluster), pytest.raises((BrokerSilent, BrokerUnreachable)) as caught:
        broker.submit(asked)
    found = None
    with contextlib.suppress(BrokerSilent):
        cluster_site.until(lambda: _reachable(broker), 20)
        found = broker.find(asked.token, user=asked.user, since=ago(hours=1))
    if caught.type is BrokerUnreachable:
        assert found is None
    job = broker.submit(asked)
    time.sleep(2)  # what the frozen controller still had in hand comes through now
    assert [j.job_id for j in jobs_with(broker, asked)] == [job.job_id]
    STEPS.cancel(cluster_site, job)


def test_a_slurmctld_that_dies_during_a_submit_leaves_one_job_or_none(
    cluster, cluster_site, broker
):
    asked = request(CAST)
    with ThreadPoolExecutor(1) as pool:
        cluster.daemon("slurmctld", "freeze")
        call = pool.submit(broker.submit, asked)
        time.sleep(1)
        cluster.daemon("slurmctld", "kill")
        cluster.daemon("slurmctld", "start")
        error = call.exception(timeout=60)
    assert error is None or isinstance(error, BrokerSilent | BrokerUnreachable)
    cluster_site.until(lambda: _reachable(broker), 20)
    job = broker.submit(asked)
    time.sleep(1)
    assert [j.job_id for j in jobs_with(broker, asked)] == [job.job_id]
    STEPS.cancel(cluster_site, job)


def test_a_frozen_slurmctld_keeps_nobody_from_reading_files(cluster, cluster_site):
    path = "/home/nlp-1/while-frozen"
    cluster_site.write(path, "nlp-1", "still here\n")
    with own_broker(cluster, SLUICE_BROKER_KILL_TIMEOUT_SECONDS="4") as process:
        broker = process.client()
        with ThreadPoolExecutor(6) as pool:
            with frozen(cluster):
                hung = [pool.submit(broker.queue) for _ in range(6)]
                time.sleep(0.5)
                for _ in range(5):
                    began = time.monotonic()
                    chunk = broker.read_file(path, user="nlp-1", offset=0, max_bytes=100)
                    assert chunk.text == "still here\n"
                    assert time.monotonic() - began < 1.5
                # The kill timeout ends each, long before slurmctld would have answered.
                errors = [call.exception(timeout=30) for call in hung]
            assert {type(error) for error in errors} <= {BrokerSilent, BrokerUnreachable}
        cluster_site.until(lambda: _answers(process), 10)


def test_a_stopped_slurmdbd_denies_no_token_and_no_run(cluster, cluster_site, broker):
    cluster.daemon("slurmdbd", "stop")
    try:
        with pytest.raises(BrokerUnreachable):
            broker.accounting(since=ago(hours=1), until=ago(seconds=0))
        with pytest.raises(BrokerUnreachable):
            broker.find("0" * 32, user="nlp-1", since=ago(hours=1))
        with pytest.raises(BrokerUnreachable):
            broker.associations()
    finally:
        cluster.daemon("slurmdbd", "start")
    cluster_site.until(lambda: _accounts(broker), 20)


def _accounts(broker):
    with contextlib.suppress(BrokerSilent, BrokerUnreachable):
        return bool(broker.associations())
    return False


def test_two_posts_of_one_form_are_one_job(cluster_site, broker):
    asked, jobs = request(CAST), []
    threads = [threading.Thread(target=lambda: jobs.append(broker.submit(asked))) for _ in range(2)]
    threads[0].start()
    time.sleep(0.08)
    threads[1].start()
    for thread in threads:
        thread.join()
    assert len({job.job_id for job in jobs}) == 1
    at_once = request(CAST)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(broker.submit, [at_once] * 4))
    assert len({job.job_id for job in found}) == 1
    STEPS.cancel(cluster_site, jobs[0], found[0])


def test_a_caller_with_another_uid_is_refused(cluster, broker_process):
    code = (
        "import contextlib, http.client, socket\n"
        "c = http.client.HTTPConnection('x'); c.sock = socket.socket(socket.AF_UNIX)\n"
        "c.sock.connect('/run/sluice/broker.sock')\n"
        # The broker turns a stranger away at once, perhaps before all is sent.
        "with contextlib.suppress(BrokenPipeError): c.request('POST', '/v1/queue', b'{}')\n"
        "r = c.getresponse(); print(r.status, r.read().decode())\n"
    )
    done = cluster.run(["/usr/bin/python3", "-c", code], user="nlp-1")
    assert done.stdout.startswith("403 "), done.stderr
    assert "caller_refused" in done.stdout
