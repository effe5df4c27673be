"""Settings: every problem at once, and no setting that ends in a stack of calls."""

import pytest

from gateway.config import load_broker_settings, load_settings
from gateway.errors import BadConfiguration


def load(home, **environ):
    return load_settings({"SLUICE_HOME": str(home), **environ})


def test_the_environment_goes_before_the_file(tmp_path):
    (tmp_path / "sluice.toml").write_text("poll_seconds = 30\ningest_days = 90\nbehind_tls = true")
    found = load(tmp_path, SLUICE_POLL_SECONDS="20")
    assert (found.poll_seconds, found.ingest_days, found.behind_tls) == (20.0, 90.0, True)


def test_every_problem_is_told_at_once(tmp_path):
    (tmp_path / "sluice.toml").write_text(
        'web_workers = "many"\npoll_seconds = 0\ntimezone = "Mars/Base"\nbehind_tls = 7\nodd = 1'
    )
    with pytest.raises(BadConfiguration) as caught:
        load(tmp_path)
    said = str(caught.value)
    for name in ("web_workers", "poll_seconds", "timezone", "behind_tls", "odd"):
        assert f"{name}: " in said


@pytest.mark.parametrize("value", ["inf", "-inf", "nan", "1e400"])
def test_a_number_that_is_none_is_a_problem(tmp_path, value):
    with pytest.raises(BadConfiguration, match="web_workers"):
        load(tmp_path, SLUICE_WEB_WORKERS=value)


def test_a_file_that_cannot_be_read_is_a_problem(tmp_path):
    for make in (
        lambda path: path.write_text("= ="),
        lambda path: path.write_bytes(b"site_name = '\xff'"),
        lambda path: (path.unlink(), path.mkdir()),
    ):
        make(tmp_path / "sluice.toml")
        with pytest.raises(BadConfiguration, match=r"sluice\.toml"):
            load(tmp_path)


@pytest.mark.parametrize("uids", ["", "sluice", "998,x"])
def test_a_broker_that_would_listen_to_nobody_does_not_start(uids):
    with pytest.raises(BadConfiguration, match="broker_allowed_uids"):
        load_broker_settings({"SLUICE_BROKER_ALLOWED_UIDS": uids})


def test_the_kits_folder_is_an_absolute_path_or_none(tmp_path):
    assert load(tmp_path).node_kit == "/opt/sluice/kit"
    assert load(tmp_path, SLUICE_NODE_KIT="").node_kit == ""
    for value in ("kit", "/a b", "/kit\nid"):
        with pytest.raises(BadConfiguration, match="node_kit"):
            load(tmp_path, SLUICE_NODE_KIT=value)
