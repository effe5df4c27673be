"""What must hold when something breaks between a request and Slurm. Each of these tests stops,
freezes or kills a real process, which is why they take seconds."""

import contextlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from broker_fixture import BrokerProcess, ClusterSite

from gateway.errors import BrokerRefused, BrokerSilent, BrokerUnreachable
from gateway.testing.contracts import Cast, Steps, refused, request, state_of

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
def own_broker(cluster, **env):
    process = BrokerProcess(cluster, name="own", env=env)
    process.start()
    try:
        yield process
    finally:
        process.stop()


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
        "import http.client, socket, sys\n"
        "c = http.client.HTTPConnection('x'); c.sock = socket.socket(socket.AF_UNIX)\n"
        "c.sock.connect('/run/sluice/broker.sock'); c.request('POST', '/v1/queue', b'{}')\n"
        "r = c.getresponse(); print(r.status, r.read().decode())\n"
    )
    done = cluster.run(["/usr/bin/python3", "-c", code], user="nlp-1")
    assert done.stdout.startswith("403 "), done.stderr
    assert "caller_refused" in done.stdout


def test_nothing_of_the_brokers_environment_reaches_a_job(cluster, cluster_site):
    leaks = {
        "SESSION_KEY": "hunter2",
        "SLUICE_DATABASE_URL": "postgresql://sluice:hunter2@db/sluice",
        "SBATCH_ACCOUNT": "vision",
        "SBATCH_QOS": "spot",
        "SBATCH_PARTITION": "debug",
        "SLURM_ACCOUNT": "vision",
        "SLURM_CPU_BIND": "none",
        "SLURM_MEM_BIND": "local",
        "SLURM_CONF": "/etc/slurm/slurm.conf",
        "PYSLURM_JOBDESC_ACCOUNT": "vision",
    }
    script = "#!/bin/sh\nenv | sort\nid -un\nid -Gn\npwd\numask\necho end\n"
    with own_broker(cluster, **leaks) as process:
        broker = process.client()
        job = broker.submit(request(CAST, script=script))
        STEPS.wait_for(ClusterSite(cluster, broker), job, "COMPLETED", "FAILED")
        text = broker.read_file(job.output, user="nlp-1", offset=0, max_bytes=65536).text
    lines = text.splitlines()
    variables = dict(line.split("=", 1) for line in lines if "=" in line)
    assert lines[-1] == "end"
    assert "hunter2" not in text
    assert not {"SESSION_KEY", "PYTHONPATH", "SLURM_CPU_BIND", "SLURM_MEM_BIND"} & set(variables)
    assert not [name for name in variables if name.startswith(("SBATCH_", "SLUICE_", "PYSLURM_"))]
    assert variables["SLURM_JOB_ACCOUNT"] == "nlp"
    assert variables["SLURM_JOB_QOS"] == "normal"
    assert variables["SLURM_JOB_PARTITION"] == "a100"
    assert (variables["HOME"], variables["USER"]) == ("/home/nlp-1", "nlp-1")
    assert variables["CUDA_VISIBLE_DEVICES"] == "0"
    assert lines[-5:-3] == ["nlp-1", "nlp"]
    assert lines[-3] == "/home/nlp-1"


def test_a_running_estimate_takes_nothing_from_the_environment(cluster):
    with own_broker(cluster, SBATCH_ACCOUNT="biolab", SBATCH_QOS="nosuch") as process:
        assert process.client().estimate(request(CAST)).start_time is not None


@pytest.mark.parametrize("name", ["é 😀 训练", "n" * 200, "a|b", "x|COMPLETED|00:00:00|0", "$(id)"])
def test_a_name_comes_back_as_it_was(cluster_site, broker, name):
    job = broker.submit(request(CAST, name=name, script="#!/bin/sh\ntrue\n"))
    assert job.name == name
    STEPS.wait_for(cluster_site, job, "COMPLETED")
    cluster_site.until(lambda: STEPS.runs_of(cluster_site, job), 20)
    assert [run.name for run in STEPS.runs_of(cluster_site, job)] == [name]


def test_names_that_others_give_hide_no_job(cluster, cluster_site, broker):
    began = ago(minutes=1)
    options = ["-A", "nlp", "-p", "a100", "-D", "/home/nlp-1", "-o", "/dev/null"]
    names = ["a|b", "two\nlines", "run\r", "x|COMPLETED|00:00:00|0|root", '","user":"root"']
    ids = set()
    for name in names:
        argv = ["sbatch", "--parsable", *options, "-J", name, "--comment", name]
        done = cluster.run(argv, user="nlp-1", stdin="#!/bin/sh\nsleep 1\n")
        ids.add(int(done.stdout))
    raw = "sbatch --parsable -A nlp -D /home/nlp-1 -o /dev/null -J $(printf 'b\\377d') --wrap true"
    ids.add(int(cluster.run(["bash", "-c", raw], user="nlp-1").stdout))
    queued = {job.job_id: job for job in broker.queue().jobs}
    assert ids <= set(queued)
    assert all(queued[job_id].user == "nlp-1" for job_id in ids)

    def all_ended():
        found = broker.accounting(since=began, until=ago(seconds=-60))
        assert found.counted == len(found.runs) + len(found.held)
        return ids <= {run.job_id for run in found.runs if run.end_time}

    cluster_site.until(all_ended, 60)
    runs = broker.accounting(since=began, until=ago(seconds=-60)).runs
    mine = {run.job_id: run for run in runs if run.job_id in ids and run.submit_time >= began}
    assert {run.user for run in mine.values()} == {"nlp-1"}
    assert {run.uid for run in mine.values()} == {queued[min(ids)].uid}
    # Slurm itself stores ` for " on the way to its database.
    stored = {name.replace('"', "`") for name in names}
    assert stored <= {run.name for run in mine.values()}


def test_a_pending_array_is_counted_whole(cluster, cluster_site, broker):
    odd = ",".join(str(n) for n in range(1, 200, 2))  # far over the 64 bytes that Slurm shows
    for tasks, count in ((f"{odd}%5", 100), ("0-20:5", 5), ("1%1", 1)):
        argv = ["sbatch", "--parsable", "-H", "-A", "nlp", "-D", "/home/nlp-1", f"--array={tasks}"]
        array = int(cluster.run(argv, user="nlp-1", stdin="#!/bin/sh\ntrue\n").stdout)
        (job,) = [j for j in broker.queue().jobs if j.array_job_id == array]
        assert (job.array_tasks, job.array_task) == (count, None)
        broker.cancel(array, user="nlp-1")


def test_task_zero_of_an_array_is_a_task(cluster, cluster_site, broker):
    argv = ["sbatch", "--parsable", "-A", "nlp", "-D", "/home/nlp-1", "--array=0-1"]
    array = int(cluster.run(argv, user="nlp-1", stdin="#!/bin/sh\nsleep 3\n").stdout)

    def running():
        jobs = [j for j in broker.queue().jobs if j.array_job_id == array]
        return {j.array_task for j in jobs if j.state in {"RUNNING", "COMPLETED"}} == {0, 1}

    cluster_site.until(running, 20)


def test_an_administrators_hold_is_not_lifted_by_the_person(cluster, cluster_site, broker):
    first, second = STEPS.waiting(cluster_site)
    assert cluster.run(["scontrol", "hold", str(second.job_id)]).returncode == 0
    with refused("access_denied"):
        broker.release(second.job_id, user="nlp-1")
    STEPS.cancel(cluster_site, second, first)


def test_a_limit_of_the_association_is_named(cluster, cluster_site, broker):
    limit = ["sacctmgr", "-i", "modify", "user", "nlp-1", "set"]
    assert cluster.run([*limit, "maxsubmitjobs=1"]).returncode == 0
    try:
        job = broker.submit(request(CAST))
        with pytest.raises(BrokerRefused, match="AssocMaxSubmitJobLimit") as caught:
            broker.submit(request(CAST))
        assert caught.value.code == "association_submit_limit"
        STEPS.cancel(cluster_site, job)
    finally:
        assert cluster.run([*limit, "maxsubmitjobs=-1"]).returncode == 0


def test_a_link_swapped_under_the_reader_wins_nothing(cluster, cluster_site, broker):
    """A process of the person changes a link to and fro while it is read."""
    cluster_site.write("/home/nlp-1/mine", "nlp-1", "mine\n")
    script = (
        "import os, time\nend = time.time() + 6\nos.chdir('/home/nlp-1')\n"
        "while time.time() < end:\n"
        "    for target in ('/home/nlp-1/mine', '/etc/hostname'):\n"
        "        os.symlink(target, 'swap.new'); os.rename('swap.new', 'swap')\n"
    )
    swapper = threading.Thread(
        target=lambda: cluster.run(["/usr/bin/python3", "-c", script], user="nlp-1")
    )
    swapper.start()
    try:
        time.sleep(1)
        seen = set()
        for _ in range(200):
            try:
                path = "/home/nlp-1/swap"
                chunk = broker.read_file(path, user="nlp-1", offset=0, max_bytes=100)
                seen.add(chunk.text)
            except BrokerRefused as error:
                seen.add(error.code)
        assert seen == {"mine\n", "file_outside"}
    finally:
        swapper.join()


def test_one_submit_is_one_line_before_and_one_after(cluster_site, broker, broker_process):
    asked = request(CAST)
    job = broker.submit(asked)
    lines = broker_process.acts_log.read_text().splitlines()
    mine = [line for line in lines if asked.token in line]
    assert len(mine) == 2
    assert '"begin"' in mine[0]
    assert f'"job_id": {job.job_id}' in mine[1]
    assert state_of(broker, job.job_id) != "GONE"
    STEPS.cancel(cluster_site, job)
