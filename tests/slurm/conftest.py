"""The real Slurm that the tests of this folder share."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # for contrib, which no wheel holds

from contrib.devcluster import host, jupyterenv, paths, rootfs, torchenv
from contrib.devcluster.errors import DevclusterError
from contrib.devcluster.instance import Instance
from gateway.store.uow import Begin, make_begin
from gateway.testing.database import database


@pytest.fixture(scope="session")
def able() -> None:
    """Skip, with the reason, where this machine cannot run the cluster."""
    if os.geteuid() != 0:
        pytest.skip("the development cluster needs root")
    try:
        host.require_supported()
    except DevclusterError as lacking:
        pytest.skip(str(lacking))


@pytest.fixture(scope="session")
def cluster(able: None) -> Iterator[Instance]:
    """A running cluster, shared by all tests of the session and brought down at its end.

    An `Instance` (contrib/devcluster/instance.py). What tests need of it:
      cluster.run(["sbatch", ...], user="nlp-1", stdin=script) -> CompletedProcess with text output
      cluster.enter_argv(argv, user=None, env={}, node=None) -> list for subprocess.Popen
      cluster.daemon("slurmctld", "stop" | "start" | "kill" | "freeze" | "thaw")
      cluster.folders.home is its $SLUICE_HOME; folders.run is /run/sluice inside
    Accounts: nlp-lead nlp-1 nlp-2 vision-lead vision-1 biolab-lead biolab-1 admin-1 (nlp-2 is in
    vision too; biolab may not use QoS urgent and holds at most 16 GPUs). Partitions: a100 (4 nodes
    of 8), rtx4090 (2 of 8), debug (1 of 2, 30 minutes). Leave no job behind: others count on idle
    nodes.
    """
    home = Path(tempfile.mkdtemp(prefix="sluice-"))  # short: a Unix socket's path has a limit
    instance = Instance(home)
    try:
        instance.up(say=print)
        yield instance
    finally:
        instance.down()
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="session")
def frameworks(cluster: Instance) -> None:
    """PyTorch, transformers, accelerate and DeepSpeed; the first time built (a minute)."""
    cache = paths.cache_folder()
    torchenv.ensure(cache, rootfs.ensure(cache, print), print, allow_cuda=True, frameworks=True)


@pytest.fixture(scope="session")
def jupyter(cluster: Instance) -> str:
    """Where JupyterLab, ipykernel and TensorBoard are on the nodes; the first time downloaded."""
    cache = paths.cache_folder()
    jupyterenv.ensure(cache, rootfs.ensure(cache, print), print)
    return jupyterenv.PLACE


from broker_fixture import broker, broker_process, cluster_site  # noqa: E402, F401
from person import person  # noqa: E402, F401
from policy_hands import sacctmgr, tidy  # noqa: E402, F401


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    """A portal's own database."""
    with database(tmp_path) as engine:
        yield make_begin(engine)
