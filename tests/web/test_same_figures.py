"""The page, its CSV, the API and the command answer one question with the same figures."""

import csv
import io
import json
import re
from datetime import timedelta

import pytest
from click.testing import CliRunner

from gateway.cli import main
from gateway.core.wait_causes import Cause
from gateway.services import keep_history
from gateway.testing import builders as b
from gateway.web.wait_tables import COLUMNS
from tests.web.test_api import _caller


@pytest.fixture
def asked(site, tmp_path, monkeypatch):
    """Forty jobs of two groups on two partitions, over and submitted on whole days of the past."""
    noon = site.broker.now.replace(hour=12, minute=0, second=0, microsecond=0)
    for n in range(40):
        submit = noon - timedelta(days=3 + n % 5)
        eligible, start = submit + timedelta(minutes=n % 3), submit + timedelta(minutes=7 * n + 3)
        end = start + timedelta(seconds=1000 + 37 * n)
        facts = {
            "user": ("nlp-1", "vision-1")[n % 2],
            "group": ("nlp", "vision")[n % 2],
            "partition": ("a100", "debug")[n // 2 % 2],
            "gpus": 1 + n % 8,
            "submit_time": submit,
            "eligible_time": eligible,
        }
        if n % 7 == 6:
            b.add_job(site.begin, state="CANCELLED", end_time=end, **facts)
            continue
        facts |= {"start_time": start, "end_time": end}
        job = b.add_job(site.begin, state="COMPLETED", **facts)
        took = int((end - start).total_seconds())
        b.add_run(site.begin, job, elapsed_seconds=took, **facts)
    keep_history.rebuild(
        tmp_path / "history", begin=site.begin, read=site.begin, now=site.broker.now
    )
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path))
    monkeypatch.setenv("SLUICE_DATABASE_URL", f"sqlite:///{tmp_path}/none.db")
    first, last = (noon - timedelta(days=days) for days in (9, 1))
    return Asked(site, first.date(), last.date())


class Asked:
    """One period, asked in four ways as an administrator."""

    def __init__(self, site, first, last):
        self.browser = site.signed_in("boss")
        self.api = _caller(site, "boss")
        self.query = f"from={first}&to={last}"
        self.words = ("--from", str(first), "--to", str(last + timedelta(days=1)), "--json")

    def page(self, path):
        """Rows of the tables: name, then the exact values of the cells."""
        text = self.browser.get(f"/waits{path}{'&' if '?' in path else '?'}{self.query}").text
        rows = re.findall(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', text, re.S)
        return {
            re.sub("<.*?>", "", name): re.findall(r'<data value="([^"]*)"', cells)
            for name, cells in rows
        }

    def file(self, path):
        text = self.browser.get(f"/waits{path}{'&' if '?' in path else '?'}{self.query}").text
        return list(csv.DictReader(io.StringIO(text)))

    def told(self, path):
        return self.api.get(f"{path}{'&' if '?' in path else '?'}{self.query}").json

    def command(self, *words):
        done = CliRunner().invoke(main, [*words, *self.words])
        assert done.exit_code == 0, done.output
        return json.loads(done.output)


@pytest.mark.parametrize("along", ["group", "partition"])
def test_waits_by_one_thing_are_the_same_everywhere(asked, along):
    command = {row["key"]: row for row in asked.command("waits", "--by", along)["rows"]}
    api = {row["key"]: row for row in asked.told(f"/waits/by/{along}")["rows"]}
    file = {row[along]: row for row in asked.file(f"/by/{along}.csv")}
    page = asked.page(f"/by/{along}")
    assert set(command) == set(api) == set(file)
    assert len(command) == 2
    for key, row in command.items():
        assert row["never_started"] > 0
        for name in ("jobs", "never_started", "waiting", "ratio_of_sums", "gpu_hours"):
            assert float(file[key][name]) == pytest.approx(row[name], abs=1e-6)
            assert api[key][name] == pytest.approx(row[name], abs=1e-6)
        for kind in ("wait", "run"):
            for name in ("n", "mean_s", "median_s", "p90_s", "p95_s", "p99_s", "max_s"):
                value = row[kind][name]
                assert float(file[key][f"{kind}_{name}"]) == pytest.approx(value, abs=1e-6)
                assert api[key][kind][name] == pytest.approx(value, abs=1e-6)
        shown = [file[key][column.key] for column in COLUMNS if file[key][column.key]]
        assert page[key] == shown


def test_usage_by_group_is_the_same_everywhere(asked):
    command = {row["group"]: row for row in asked.command("usage", "--by", "group")["rows"]}
    api = {row["group"]: row for row in asked.told("/usage?by=group")["rows"]}
    file = {row["group"]: row for row in asked.file("/usage/use.csv?by=group")}
    page = asked.page("/usage?by=group")
    assert set(command) == set(api) == set(file)
    for key, row in command.items():
        assert row["gpu_seconds"] > 0
        for name in ("gpu_seconds", "gpu_hours", "runs", "runs_ended", "people"):
            assert api[key][name] == pytest.approx(row[name])
        for name in ("gpu_hours", "runs", "people"):
            assert float(file[key][name]) == pytest.approx(row[name], abs=1e-6)
        assert str(row["runs"]) in page[key]
        assert file[key]["gpu_hours"] in page[key]


def test_causes_by_group_are_the_same_everywhere(asked):
    command = {
        row["key"]: row for row in asked.command("waits", "--causes", "--by", "group")["rows"]
    }
    api = {row["key"]: row for row in asked.told("/waits/causes?by=group")["rows"]}
    file = {row["group"]: row for row in asked.file("/causes/causes.csv?by=group")}
    page = asked.page("/causes?by=group")
    assert set(command) == set(api) == set(file)
    for key, row in command.items():
        assert row["wait_s"] == int(file[key]["wait_s"]) > 0
        assert row["seconds"] == api[key]["seconds"]
        assert row["seconds"] == {cause.value: int(file[key][f"{cause}_s"]) for cause in Cause}
        assert page[key][0] == str(row["jobs"]) == file[key]["jobs"]
        assert page[key][2:] == [str(row["seconds"][cause]) for cause in Cause]
