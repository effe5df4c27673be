"""The real broker keeps its promises, on a real cluster, through the real client."""

import pytest
from broker_fixture import ClusterSite

from gateway.testing.contracts import BrokerContract

pytestmark = pytest.mark.slurm


class TestRealBroker(BrokerContract):
    @pytest.fixture
    def site(self, cluster_site: ClusterSite) -> ClusterSite:
        return cluster_site
