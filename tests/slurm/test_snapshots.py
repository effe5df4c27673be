"""Snapshots on a real cluster: a job installs and saves, a colleague's job imports, nobody else's.

The wheel is made here; no network is used. Real are Slurm, the broker, the kit, squashfs, pip.
"""

import base64
import re
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gateway.config import assets
from gateway.core.access import Viewer
from gateway.core.environments import Environment, EnvironmentKind
from gateway.core.manifest import Text
from gateway.services import snapshots
from gateway.services.environments import offered
from gateway.services.submit import InvalidAsk
from gateway.services.templates import Catalogue
from gateway.store.uow import make_begin
from gateway.testing import builders as b
from gateway.testing.database import database
from gateway.testing.portal import Portal, ask, portal

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.train.env_places import wheel

if TYPE_CHECKING:
    from contrib.devcluster.instance import Instance

pytestmark = pytest.mark.slurm

BASE, AREA = "/home/bases/torch", "/home/snapshots"
TORCH = Environment("torch", Text("Torch", "Torch"), EnvironmentKind.VENV, path=BASE)
OWNER, COLLEAGUE, STRANGER = "nlp-1", "nlp-lead", "biolab-1"
INSTALL = """#!/bin/bash
set -e
pip install -q --no-index --no-deps "$HOME/alpha-1.0-py3-none-any.whl"
alpha-say
sluice-save from the test
"""
USE = """#!/bin/bash
alpha-say
python -c 'import alpha; print("imported", alpha.__file__)'
"""


@pytest.fixture
def site(tmp_path, broker, cluster_site):
    with database(tmp_path) as engine:
        begin = make_begin(engine)
        made = portal(begin, user="admin-1", broker=broker, clock=lambda: datetime.now(UTC))
        made.catalogue = Catalogue.load((assets() / "sbatch_templates",), area=AREA)
        yield made
        for job in made.broker.queue().jobs:
            if job.state in {"PENDING", "RUNNING"}:
                made.broker.cancel(job.job_id, user=job.user)


@pytest.fixture
def base(cluster: "Instance") -> None:
    """Built by root, read by all."""
    root(cluster, f"python3 -m venv {BASE} && mkdir -p {AREA} && chmod 1777 {AREA}")


def root(cluster: "Instance", line: str) -> str:
    done = cluster.run(["sh", "-c", line])
    assert done.returncode == 0, done.stderr
    return done.stdout


def write(cluster: "Instance", user: str, name: str, data: bytes) -> None:
    text = base64.b64encode(data).decode()
    line = f'base64 -d > "$HOME/{name}" && chmod 755 "$HOME/{name}"'
    done = cluster.run(["sh", "-c", line], user=user, stdin=text)
    assert done.returncode == 0, done.stderr


def who(site: Portal, user: str, group: str) -> Viewer:
    return b.viewer(user, person_id=b.add_person(site.begin, user), groups=(group,))


def run(site: Portal, viewer: Viewer, *, environment: str, nodes: int = 1, **values: str) -> str:
    """The job's output, once it has ended well."""
    with site.begin() as session:
        known = offered(viewer, session, (TORCH,))
    wanted = replace(
        ask(template="command", nodes=str(nodes), nproc_per_node="1", time_limit="10"),
        name="snap",
        group=viewer.groups[0],
        working_directory=f"/home/{viewer.unix_user}",
        environment=environment,
        values={"gpus_per_node": "1", **values},
    )
    key = f"{viewer.unix_user}-{environment}-{nodes}"
    submission = site.submit(wanted, key=key, viewer=viewer, environments=known)
    site.poll()
    end, output = time.monotonic() + 120, ""
    while time.monotonic() < end:
        site.poll()
        job = next(one for one in site.jobs() if one.id == site.submission(submission).job_id)
        if job.state not in {"PENDING", "RUNNING", "COMPLETING"}:
            break
        time.sleep(0.5)
    path = f"/home/{viewer.unix_user}/snap-{job.slurm_id}.out"
    user = viewer.unix_user
    output = site.broker.read_file(path, user=user, offset=0, max_bytes=60_000).text
    assert job.state == "COMPLETED", (job.state, output)
    return output


def test_what_one_job_saves_a_colleagues_job_imports_and_a_strangers_cannot_choose(
    cluster: "Instance", site: Portal, base: None, tmp_path: Path
) -> None:
    owner, colleague = who(site, OWNER, "nlp"), who(site, COLLEAGUE, "nlp")
    stranger = who(site, STRANGER, "biolab")
    made = wheel(tmp_path / "wheels", "alpha")
    write(cluster, OWNER, made.name, made.read_bytes())
    write(cluster, OWNER, "install.sh", INSTALL.encode())
    for user in (OWNER, COLLEAGUE, STRANGER):
        write(cluster, user, "use.sh", USE.encode())

    told = run(site, owner, environment="torch", overlay="true", command="bash install.sh")
    assert "alpha 1.0" in told
    short = re.search(r"saved as snapshot ([0-9a-f]{12})", told)
    assert short, told

    look = snapshots.refresh(
        owner, begin=site.begin, broker=site.broker, now=site.now, area=AREA, force=True
    )
    assert [one[:12] for one in look.new] == [short[1]]
    with site.begin() as session:
        (row,) = snapshots.listed(session, owner)
    assert (row.name, row.document.added, row.document.base.name) == (
        "from the test",
        ("alpha==1.0",),
        "torch",
    )
    assert row.reachable

    name = f"snapshot:{short[1]}"
    with pytest.raises(InvalidAsk):
        run(site, colleague, environment=name, command="bash use.sh")
    snapshots.share(owner, short[1], to="nlp", begin=site.begin)
    told = run(site, colleague, environment=name, command="bash use.sh")
    assert "imported" in told
    assert f"/sluice-{uid(cluster, COLLEAGUE)}/snapshots/" in told
    both = run(site, owner, environment=name, nodes=2, command="bash use.sh")
    assert both.count("imported") == 2
    with pytest.raises(InvalidAsk) as refused:
        run(site, stranger, environment=name, command="bash use.sh")
    assert {one.code for one in refused.value.problems} == {"unknown_environment"}

    listed = cluster.run(["ls", f"{AREA}/{OWNER}/documents"], user=STRANGER)
    assert listed.returncode != 0, "nobody finds a name by looking"


def test_a_damaged_layer_ends_the_job_with_a_sentence(
    cluster: "Instance", site: Portal, base: None, tmp_path: Path
) -> None:
    owner = who(site, "nlp-2", "nlp")
    made = wheel(tmp_path / "wheels", "alpha")
    write(cluster, "nlp-2", made.name, made.read_bytes())
    write(cluster, "nlp-2", "install.sh", INSTALL.encode())
    told = run(site, owner, environment="torch", overlay="true", command="bash install.sh")
    short = re.search(r"saved as snapshot ([0-9a-f]{12})", told)
    assert short, told
    snapshots.refresh(
        owner, begin=site.begin, broker=site.broker, now=site.now, area=AREA, force=True
    )
    root(cluster, f"for f in {AREA}/nlp-2/layers/*.sqfs; do printf x >> $f; done")
    with pytest.raises(AssertionError, match="another hash") as ended:
        run(site, owner, environment=f"snapshot:{short[1]}", command="true")
    assert "FAILED" in str(ended.value)


def uid(cluster: "Instance", user: str) -> str:
    return cluster.run(["id", "-u"], user=user).stdout.strip()
