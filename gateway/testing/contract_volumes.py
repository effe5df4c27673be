"""Promises about volumes: made whole, limited, and read back."""

import uuid

import pytest

from gateway.brokerclient.port import Broker
from gateway.testing.contract_steps import ContractSite, Steps, refused
from gateway.wire import volumes as vol

AREA = "volumes"
MB = 2**20


def make(site: ContractSite, limit: int | None = 50 * MB) -> vol.Volume:
    """A volume of its own; skips where the site has no area that limits."""
    if not any(one.name == AREA and one.problem is None for one in site.broker.volumes().areas):
        pytest.skip("this cluster has no area for volumes: it takes loop devices and Btrfs")
    name = f"c{uuid.uuid4().hex[:12]}"
    return site.broker.make_volume(vol.MakeVolume(AREA, name, site.cast.account, limit))


def read(broker: Broker, name: str) -> vol.Volume | None:
    found = broker.volumes().volumes
    return next((one for one in found if (one.area, one.name) == (AREA, name)), None)


class VolumeContract(Steps):
    """Areas, volumes, limits."""

    def test_a_volume_is_the_groups_and_is_read_as_it_was_made(self, site: ContractSite) -> None:
        made = make(site)
        assert (made.owner, made.limit_bytes) == (site.cast.account, 50 * MB)
        assert made.path == f"/volumes/{made.name}"
        assert made.problem is None
        assert made.used_bytes is not None
        assert made.used_bytes < MB
        assert read(site.broker, made.name) == made
        with refused("volume_exists"):
            site.broker.make_volume(vol.MakeVolume(AREA, made.name, site.cast.account, None))
        assert read(site.broker, made.name) == made

    def test_a_limit_is_changed_by_who_knows_what_it_is(self, site: ContractSite) -> None:
        made = make(site)
        back = site.broker.set_volume_limit(vol.SetVolumeLimit(AREA, made.name, 50 * MB, 80 * MB))
        assert back.limit_bytes == 80 * MB
        with refused("volume_changed_meanwhile"):
            site.broker.set_volume_limit(vol.SetVolumeLimit(AREA, made.name, 50 * MB, 60 * MB))
        # Asked for again after an answer that was lost: it is so already.
        again = vol.SetVolumeLimit(AREA, made.name, 50 * MB, 80 * MB)
        assert site.broker.set_volume_limit(again).limit_bytes == 80 * MB
        none = site.broker.set_volume_limit(vol.SetVolumeLimit(AREA, made.name, 80 * MB, None))
        assert none.limit_bytes is None
        found = read(site.broker, made.name)
        assert found is not None
        assert found.limit_bytes is None

    def test_what_is_no_volume_is_refused(self, site: ContractSite) -> None:
        make(site)
        before = site.broker.volumes().volumes
        group = site.cast.account
        for name in ("", "a/b", "../etc", ".new-a", "A", "a b", "a;b", "x" * 41, "é"):
            with refused("volume_bad_name"):
                site.broker.make_volume(vol.MakeVolume(AREA, name, group, MB))
            with refused("volume_bad_name"):
                site.broker.set_volume_limit(vol.SetVolumeLimit(AREA, name, None, MB))
        for limit in (0, -MB, MB + 1, 2**61):
            with refused("volume_bad_limit"):
                site.broker.make_volume(vol.MakeVolume(AREA, "fresh", group, limit))
        for other in ("", "nosuchgroup", "a b", "-x"):
            with refused("volume_no_such_group"):
                site.broker.make_volume(vol.MakeVolume(AREA, "fresh", other, MB))
        with refused("no_such_area"):
            site.broker.make_volume(vol.MakeVolume("nosuch", "fresh", group, MB))
        with refused("no_such_volume"):
            site.broker.set_volume_limit(vol.SetVolumeLimit(AREA, "nosuch", None, MB))
        assert [one.name for one in site.broker.volumes().volumes] == [one.name for one in before]
