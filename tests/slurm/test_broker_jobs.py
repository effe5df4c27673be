"""What of a request reaches a job, what does not, and what comes back of jobs of any kind."""

import threading
import time
from datetime import UTC, datetime, timedelta

import pytest
from broker_fixture import ClusterSite, own_broker

from gateway.core.tres import parse_tres, single_gpu_type
from gateway.errors import BrokerRefused
from gateway.services.ingest_new import asked_gpu_type
from gateway.testing.contract_steps import ENDED
from gateway.testing.contracts import Cast, Steps, refused, request, state_of, wide

pytestmark = pytest.mark.slurm
STEPS = Steps()
CAST = Cast()


def ago(**span):
    return datetime.now(UTC) - timedelta(**span)


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


def test_every_field_of_a_request_reaches_slurm(cluster, cluster_site, broker):
    first = broker.submit(wide(CAST))
    asked = request(
        CAST,
        nodes=2,
        gpus_per_node=3,
        cpus_per_task=4,
        memory_mb_per_node=1500,
        time_limit_minutes=90,
        requeue=False,
        signal="B:USR1@120",
        working_directory="/home/nlp-1",
        output="out-%j.log",
    )
    job = broker.submit(asked)
    shown = cluster.run(["scontrol", "--oneliner", "show", "job", str(job.job_id)]).stdout
    fields = dict(word.split("=", 1) for word in shown.split() if "=" in word)
    assert fields["UserId"].startswith("nlp-1(")
    assert fields["GroupId"].startswith("nlp(")
    assert fields["TresPerNode"] == "gres/gpu:a100:3"
    assert "gres/gpu=6" in fields["ReqTRES"]
    assert (fields["NumNodes"], fields["NumTasks"], fields["CPUs/Task"]) == ("2-2", "2", "4")
    assert "mem=3000M" in fields["ReqTRES"]
    assert fields["TimeLimit"] == "01:30:00"
    assert (fields["Requeue"], fields["WorkDir"]) == ("0", "/home/nlp-1")
    assert fields["StdOut"] == f"/home/nlp-1/out-{job.job_id}.log"
    assert fields["StdErr"] in ("", fields["StdOut"])
    assert fields["Comment"] == f"sluice:{asked.token}"
    STEPS.cancel(cluster_site, job, first)


def test_a_script_gets_its_warning_and_its_output_is_appended(cluster, cluster_site, broker):
    """Slurm may warn up to a minute early, so even before the shell has set its trap, which then
    ends the job: such a one is sent again."""
    script = "#!/bin/sh\ntrap 'echo warned; exit 0' USR1\necho began\nsleep 200 &\nwait\n"
    output = "/home/nlp-1/append.log"

    def text():
        return broker.read_file(output, user="nlp-1", offset=0, max_bytes=1000).text

    for _ in range(3):
        cluster_site.write(output, "nlp-1", "before\n")
        asked = request(
            CAST, output=output, script=script, signal="B:USR1@60", time_limit_minutes=1
        )
        job = broker.submit(asked)
        STEPS.wait_for(cluster_site, job, *ENDED, "GONE", seconds=90)
        if "began" in text():
            break
    written = [line for line in text().splitlines() if " error: " not in line]  # slurmstepd's own
    assert written == ["before", "began", "warned"]


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
    with refused("held_by_admin"):
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


@pytest.mark.parametrize("asked", [None, "a100"])
def test_what_was_given_is_never_said_to_be_asked_for(cluster_site, broker, asked):
    """While it runs, after its end and in accounting: forecasts learn from it."""
    script = "#!/bin/sh\nsleep 15\n"
    job = broker.submit(request(CAST, gpus_per_node=1, gpu_type=asked, script=script))

    def seen():
        (one,) = [one for one in broker.queue().jobs if one.job_id == job.job_id]
        return one.gpu_type, one.req_gpu_type

    STEPS.wait_for(cluster_site, job, "RUNNING")
    assert seen() == ("a100", asked)
    STEPS.wait_for(cluster_site, job, "COMPLETED")
    assert seen() == ("a100", asked)
    cluster_site.until(lambda: STEPS.runs_of(cluster_site, job), 20)
    (run,) = STEPS.runs_of(cluster_site, job)
    assert single_gpu_type(parse_tres(run.alloc_tres)) == "a100"
    assert asked_gpu_type(run.req_tres) == asked
