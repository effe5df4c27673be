"""Filters of waits in the address: what is read, what is left out, and that nothing breaks."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from flask import url_for
from werkzeug.datastructures import MultiDict

from gateway.core.wait_figures import Dimension, Wait
from gateway.web import wait_filter_form, wait_filters
from gateway.web.wait_filters import Asked
from tests.web.conftest import Site

NOW = datetime(2026, 6, 30, 12, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")


@pytest.fixture(autouse=True)
def _request(site: Site):  # type: ignore[no-untyped-def]  # a generator of a request's context
    with site.app.test_request_context("/waits"):
        yield


def read(query: str, zone: ZoneInfo = BERLIN) -> Asked:
    pairs = [tuple(part.split("=", 1)) for part in query.split("&") if part]
    return wait_filters.read(MultiDict(pairs), now=NOW, zone=zone)


def test_without_a_query_the_last_thirty_days_are_asked() -> None:
    asked = read("")
    assert asked.question.since == NOW - timedelta(days=30)
    assert asked.question.until == NOW
    assert asked.problems == ()
    assert asked.pairs == ()


def test_filters_combine_and_stay_in_the_address() -> None:
    asked = read("partition=a100&partition=debug&gpu_class=5-8&group=unknown&wait=submit&period=7")
    assert asked.question.only == {
        Dimension.PARTITION: ("a100", "debug"),
        Dimension.GPU_CLASS: ("5-8",),
        Dimension.GROUP: ("",),
    }
    assert asked.question.wait is Wait.SUBMIT
    assert asked.url("waits.index") == url_for("waits.index", **asked.query)
    for part in ("partition=a100", "partition=debug", "gpu_class=5-8", "wait=submit", "period=7"):
        assert part in asked.url("waits.index")


def test_days_are_those_of_the_site_and_both_ends_count_over_a_change_of_clocks() -> None:
    asked = read("from=2026-03-29&to=2026-03-29")  # Berlin puts its clocks forward: 23 hours
    assert asked.question.since == datetime(2026, 3, 28, 23, tzinfo=UTC)
    assert asked.question.until == datetime(2026, 3, 29, 22, tzinfo=UTC)
    assert asked.period == ""


@pytest.mark.parametrize(
    "query",
    [
        "period=fortnight",
        "gpu_class=7",
        "limit_class=long",
        "state=FINISHED",
        "wait=never",
        "from=yesterday",
        "to=2026-02-30",
        "from=0001-01-01",
        "to=9999-12-31",
        "from=2026-05-02&to=2026-05-01",
        "partition=" + "x" * 500,
        "partition=a\0b",
    ],
)
def test_what_cannot_be_read_is_left_out_and_said(query: str, site: Site) -> None:
    asked = read(query)
    assert len(asked.problems) == 1
    assert asked.pairs == ()
    assert asked.question.since == NOW - timedelta(days=30)
    answer = site.signed_in().get("/waits?" + query.replace("\0", "%00"))
    assert answer.status_code == 200
    assert 'class="note warn"' in answer.text


@pytest.mark.parametrize(
    "path",
    [
        "over-time?step=fortnight",
        "by/group?sort=beauty",
        "causes?by=moon",
        "usage?by=moon",
        "usage?and=moon",
        "forecast?moment=never",
    ],
)
def test_what_else_a_page_cannot_read_is_said_too(path: str, site: Site) -> None:
    page = site.signed_in().get(f"/waits/{path}").text
    assert f"“{path.partition('=')[2]}” is not known. What cannot be read was left out." in page


@pytest.mark.parametrize(
    "path",
    [
        "overview.csv?period=moon",
        "by/group.csv?gpu_class=moon",
        "by/group.csv?sort=moon",
        "distribution.csv?from=moon",
        "curves.csv?wait=moon",
        "over-time.csv?step=moon",
        "week.csv?state=moon",
        "causes/causes.csv?by=moon",
        "usage/use.csv?by=moon",
        "usage/use.csv?and=moon",
        "usage/cards.csv?period=moon",
        "forecast/scores.csv?moment=moon",
    ],
)
def test_no_file_is_made_of_what_cannot_be_read(path: str, site: Site) -> None:
    browser = site.signed_in()
    answer = browser.get(f"/waits/{path}")
    assert answer.status_code == 400
    assert "No file is made of what cannot be read." in answer.text
    assert "“moon” is not known." in answer.text
    assert browser.get(f"/waits/{path.partition('?')[0]}").mimetype == "text/csv"


def test_an_empty_site_is_not_told_of_filters(site: Site) -> None:
    browser = site.signed_in()
    for path in ("", "/over-time", "/week", "/distribution", "/causes", "/usage"):
        page = browser.get(f"/waits{path}").text
        assert "in this period" in page
        assert "with these filters" not in page
        assert "yet" in browser.get(f"/waits{path}?period=all").text
        assert "with these filters" in browser.get(f"/waits{path}?partition=a100").text


def test_a_chip_takes_one_value_away_and_leaves_the_rest() -> None:
    asked = read("partition=a100&partition=debug&period=all")
    chips = wait_filter_form.view(asked, "waits.index", {}).set
    assert [chip.url for chip in chips] == [
        "/waits?partition=debug&period=all",
        "/waits?partition=a100&period=all",
    ]


def test_what_is_typed_in_a_filter_is_never_markup(site: Site) -> None:
    page = site.signed_in().get("/waits?partition=%3Cscript%3Ealert(1)%3C/script%3E").text
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page


def test_more_values_than_anybody_types_are_cut_with_a_word() -> None:
    asked = read("&".join(f"group=g{number}" for number in range(60)))
    assert len(asked.question.only[Dimension.GROUP]) == 50
    assert len(asked.problems) == 1


def test_the_form_carries_what_stands_beside_it() -> None:
    asked = read("period=all&wait=submit&partition=a100")
    carried = wait_filter_form.view(asked, "waits.index", {}, keep={"step": "week"}).carried
    assert set(carried) == {("period", "all"), ("wait", "submit"), ("step", "week")}
