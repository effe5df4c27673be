"""A check of the cluster's PyTorch, from the button to the matrix: it tells what is there."""

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from person import TORCH

from gateway.core.access import Role
from gateway.core.env_check import read_steps
from gateway.core.environments import Environment, EnvironmentKind
from gateway.core.manifest import Text
from gateway.services import environment_checks, environment_publish, site_jobs
from gateway.services.site_kinds import KINDS
from gateway.store import environments as store
from gateway.store.environments import CheckRow
from gateway.store.uow import make_begin
from gateway.testing import builders as b
from gateway.testing.database import database
from gateway.testing.portal import CLUSTER, Portal, portal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gateway.brokerclient.client import SocketBroker

pytestmark = pytest.mark.slurm

TITLE = Text("PyTorch", "PyTorch")
GOOD = Environment("torch-2.13", TITLE, EnvironmentKind.VENV, path=TORCH)
GONE = Environment("gone", TITLE, EnvironmentKind.VENV, path="/opt/envs/gone")


@pytest.fixture
def site(tmp_path: "Path", broker: "SocketBroker", cluster_site: object) -> "Iterator[Portal]":
    with database(tmp_path) as engine:
        yield portal(make_begin(engine), broker=broker, clock=lambda: datetime.now(UTC))


def checked(site: Portal, environment: Environment, gpu_type: str, seconds: float) -> CheckRow:
    """Press the button, and let the worker work until the row is there."""
    leader = b.viewer(
        "nlp-1",
        person_id=site.viewer.person_id,
        role=Role.ADMINISTRATOR,
        groups=("nlp",),
    )
    environment_checks.start(
        environment_publish.Entry(environment, None),
        gpu_type,
        viewer=leader,
        desk=site_jobs.Desk(site.begin, site.begin, site.broker, site.catalogue, CLUSTER),
        form_key=f"{environment.name}-{gpu_type}",
        now=site.now,
    )
    end = time.monotonic() + seconds
    while True:
        site.poll()
        site.ingest()
        site_jobs.collect(
            begin=site.begin,
            read=site.begin,
            broker=site.broker,
            kinds=KINDS,
            now=site.now + timedelta(minutes=3),  # as long as a result is waited for
        )
        with site.begin() as session:
            found = store.newest_checks(session).get((environment.name, gpu_type))
        if found is not None:
            return found
        assert time.monotonic() < end, site.jobs()[-1].state
        time.sleep(1)


@pytest.mark.usefixtures("frameworks")
def test_the_clusters_pytorch_is_imported_and_two_ranks_meet(site: Portal) -> None:
    row = checked(site, GOOD, "rtx4090", 300)

    assert row.ok, row
    steps = {step.name: step for step in read_steps(row.steps)}
    assert {"import torch", "cards", "collective of 2 ranks, gloo"} <= set(steps)
    assert row.facts.versions["torch"].startswith("2.13")
    assert {"python", "transformers", "deepspeed"} <= set(row.facts.versions)
    assert row.seconds > 0


def test_an_environment_that_is_not_there_fails_and_says_where_to_look(site: Portal) -> None:
    row = checked(site, GONE, "a100", 300)

    assert (row.ok, row.code) == (False, "site_job_no_result")
