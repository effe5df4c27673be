"""The administrators' pages of policy: who may, a change from the form to Slurm and back, drift."""

import re
from dataclasses import replace

import pytest

from gateway.core.qos import tres
from gateway.services import policy_apply, policy_drift
from gateway.services.policy_present import present
from gateway.store import models as t
from gateway.store import snapshot
from gateway.testing import builders as b
from gateway.web.policy_form import typed_policy
from gateway.wire import messages as m
from tests.web.conftest import Browser, Site

PAGES = (
    "/admin/qos",
    "/admin/qos/normal",
    "/admin/qos/normal/history",
    "/admin/changes",
    "/admin/policy/groups",
    "/admin/policy/groups/nlp",
    "/admin/policy/groups/nlp/history",
)
FORMS = (
    "/admin/policy/new",
    "/admin/policy/new?copy=spot",
    "/admin/qos/normal/edit",
    "/admin/qos/normal/retire",
    "/admin/policy/groups/nlp/edit",
)
ACTS = (
    "/admin/policy/new",
    "/admin/qos/normal/edit",
    "/admin/qos/normal/retire",
    "/admin/qos/normal/back",
    "/admin/qos/normal/undo",
    "/admin/qos/normal/adopt",
    "/admin/qos/normal/restore",
    "/admin/policy/groups/nlp/edit",
    "/admin/changes/1/apply",
    "/admin/changes/1/times",
)
GPU_4 = tres({"gres/gpu": 4})


@pytest.fixture
def boss(site: Site) -> Browser:
    """The worker has seen everything once, so that each object has its first version."""
    _worker_looks(site)
    return site.signed_in("boss")


def _worker_looks(site: Site) -> None:
    site.broker.advance(60)
    site.look()
    policy_drift.look(begin=site.begin, read=site.begin, now=site.broker.now)


def _form(site: Site, browser: Browser, path: str, **typed: str | list[str]) -> dict[str, object]:
    """What a browser sends of the form of `path`, with some fields typed anew."""
    page = browser.get(path).text
    with site.begin() as session:
        there = present(session)
    name = path.split("/")[-2]
    policy = there.groups.get(name) or there.qos.get(name) or m.Qos(name="")
    sent: dict[str, object] = dict(typed_policy(policy).lists())
    for hidden in ("key", "shown"):
        found = re.search(rf'name="{hidden}" value="([^"]*)"', page)
        assert found is not None
        sent[hidden] = found[1]
    return sent | {key.replace("__", "."): value for key, value in typed.items()}


def _propose(site: Site, browser: Browser, path: str, **typed: str | list[str]) -> str:
    """The address of the proposal."""
    answer = browser.post(path, _form(site, browser, path, **typed))
    assert answer.status_code == 303, answer.text
    return answer.location


def _lower(site: Site, browser: Browser) -> str:
    rows = {"max_tres_per_user__resource": ["gres/gpu"], "max_tres_per_user__number": ["4"]}
    return _propose(site, browser, "/admin/qos/normal/edit", **rows)


@pytest.mark.parametrize("path", [*PAGES, *FORMS])
def test_administrators_see_it_and_researchers_and_strangers_nothing(site: Site, path: str) -> None:
    _worker_looks(site)
    assert site.signed_in("boss").get(path).status_code == 200
    for login in ("nlp-1", "nlp-lead"):
        assert site.signed_in(login).get(path).status_code == 404
    assert "/sign-in" in site.browser().get(path).location


def test_operators_look_and_do_not_act(site: Site) -> None:
    b.add_person(site.begin, "watch", role="operator")
    watch = site.signed_in("watch")
    for path in PAGES:
        assert watch.get(path).status_code == 200
    assert "/admin/qos/normal/edit" not in watch.get("/admin/qos/normal").text
    for path in FORMS:
        assert watch.get(path).status_code == 404
    for path in ACTS:
        assert watch.post(path).status_code == 404


@pytest.mark.parametrize("path", [
    "/admin/qos/nosuch", "/admin/qos/nosuch/edit", "/admin/qos/nosuch/history",
    "/admin/qos/a'--", "/admin/policy/groups/root", "/admin/policy/groups/nosuch",
    "/admin/qos/%00", "/admin/changes/99", "/admin/changes/99999999999999999999",
])  # fmt: skip
def test_what_is_not_there_is_not_found(boss: Browser, path: str) -> None:
    assert boss.get(path).status_code == 404


def test_the_list_says_limits_in_words_and_who_uses_it(site: Site, boss: Browser) -> None:
    site.portal.submit()
    site.portal.deliver_due()
    site.broker.advance(5)
    site.look()
    text = boss.get("/admin/qos").text
    assert "8 GPUs" in text  # urgent, each person
    assert "0.82×" in text
    row = text[text.index("/admin/qos/normal") : text.index("/admin/qos/spot")]
    assert ">1</a>" in row  # one running job, on eight cards
    assert '<td class="number" data-label="GPUs in use">8</td>' in row
    assert "nlp-1" in boss.get("/admin/qos/normal").text


def test_a_limit_is_shown_with_what_is_used_of_it(site: Site, boss: Browser) -> None:
    policy = site.broker.policy
    policy.qos["normal"] = replace(policy.qos["normal"], max_tres_per_user=tres({"gres/gpu": 8}))
    site.portal.submit()
    site.portal.deliver_due()
    site.broker.advance(5)
    site.look()
    text = boss.get("/admin/qos/normal").text
    assert "8 GPUs of 8 GPUs" in text
    assert "the most: nlp-1" in text
    assert "full:" in text


def test_an_edit_is_a_proposal_first_and_slurm_has_it_after_apply(
    site: Site, boss: Browser
) -> None:
    place = _lower(site, boss)
    page = boss.get(place).text
    assert "Nothing was sent to Slurm. Look at what it does, then apply it." in page
    assert "4 GPUs" in page
    assert site.broker.policy.qos["normal"].max_tres_per_user == ()
    # The worker must not apply what is only looked at.
    policy_apply.apply_due(begin=site.begin, broker=site.broker, now=site.broker.now)
    assert site.broker.policy.qos["normal"].max_tres_per_user == ()
    assert boss.post(f"{place}/apply").status_code == 303
    assert site.broker.policy.qos["normal"].max_tres_per_user == GPU_4
    assert "Slurm has all of it: it was read back and compared." in boss.get(place).text
    assert "4 GPUs" in boss.get("/admin/qos/normal").text  # before the next poll


def test_a_change_and_a_version_are_undone_by_proposals(site: Site, boss: Browser) -> None:
    place = _lower(site, boss)
    boss.post(f"{place}/apply")
    back = boss.post(f"{place}/undo", {"key": "u1"})
    assert back.status_code == 303
    assert back.location != place
    assert site.broker.policy.qos["normal"].max_tres_per_user == GPU_4
    boss.post(f"{back.location}/apply")
    assert site.broker.policy.qos["normal"].max_tres_per_user == ()
    again = boss.post("/admin/qos/normal/undo", {"version": "2", "key": "u2"})
    boss.post(f"{again.location}/apply")
    assert site.broker.policy.qos["normal"].max_tres_per_user == GPU_4
    history = boss.get("/admin/qos/normal/history").text
    assert "Version 4" in history
    assert "found in Slurm" in history


def test_pressing_twice_makes_one_proposal(site: Site, boss: Browser) -> None:
    sent = _form(site, boss, "/admin/qos/normal/edit", priority="101")
    first = boss.post("/admin/qos/normal/edit", sent)
    second = boss.post("/admin/qos/normal/edit", sent)
    assert first.location == second.location


def test_a_form_sent_again_with_something_else_is_another_proposal(
    site: Site, boss: Browser
) -> None:
    """After the browser's way back its hidden key is the same."""
    sent = _form(site, boss, "/admin/qos/normal/edit", priority="101")
    first = boss.post("/admin/qos/normal/edit", sent)
    second = boss.post("/admin/qos/normal/edit", sent | {"priority": "102"})
    assert first.location != second.location
    assert "102" in boss.get(second.location).text


@pytest.mark.parametrize("before", ["9" * 30, "-1", "x", "٣", "0"])
def test_a_page_of_changes_before_a_number_that_is_none(boss: Browser, before: str) -> None:
    assert boss.get(f"/admin/changes?before={before}").status_code == 200


def test_a_form_that_is_out_of_date_keeps_what_was_typed_and_proposes_nothing(
    site: Site, boss: Browser
) -> None:
    sent = _form(site, boss, "/admin/qos/normal/edit", priority="777")
    policy = site.broker.policy
    policy.qos["normal"] = replace(policy.qos["normal"], priority=5)
    site.broker.advance(60)
    site.look()
    answer = boss.post("/admin/qos/normal/edit", sent)
    assert answer.status_code == 422
    assert "Slurm has something else than when you opened this form." in answer.text
    assert 'value="777"' in answer.text
    assert boss.post("/admin/qos/normal/edit", sent | {"shown": _shown(answer.text)}).location


def _shown(page: str) -> str:
    found = re.search(r'name="shown" value="([^"]*)"', page)
    assert found is not None
    return found[1]


def test_what_slurm_got_meanwhile_is_not_overwritten(site: Site, boss: Browser) -> None:
    place = _lower(site, boss)
    policy = site.broker.policy
    policy.qos["normal"] = replace(policy.qos["normal"], priority=5)
    boss.post(f"{place}/apply")
    page = boss.get(place).text
    assert "Slurm has something else by now. Nothing was overwritten" in page
    assert policy.qos["normal"].priority == 5
    assert policy.qos["normal"].max_tres_per_user == ()


def test_a_write_that_slurm_half_takes_says_what_it_has(site: Site, boss: Browser) -> None:
    site.broker.policy.refuse_qos_fields = frozenset({"priority"})
    rows = {"max_tres_per_user__resource": ["gres/gpu"], "max_tres_per_user__number": ["4"]}
    place = _propose(site, boss, "/admin/qos/normal/edit", priority="5", **rows)
    boss.post(f"{place}/apply")
    page = boss.get(place).text
    assert "partly applied" in page
    assert "What Slurm has instead" in page


def test_a_new_qos_is_made_and_a_name_that_is_there_is_refused(site: Site, boss: Browser) -> None:
    taken = boss.post("/admin/policy/new", _form(site, boss, "/admin/policy/new", name="spot"))
    assert taken.status_code == 422
    assert "There is a QoS of this name already." in taken.text
    place = _propose(site, boss, "/admin/policy/new", name="deadline", priority="500")
    boss.post(f"{place}/apply")
    assert site.broker.policy.qos["deadline"].priority == 500


def test_a_form_without_a_change_says_so(site: Site, boss: Browser) -> None:
    answer = boss.post("/admin/qos/normal/edit", _form(site, boss, "/admin/qos/normal/edit"))
    assert answer.status_code == 422
    assert "Nothing is different from what Slurm has." in answer.text


def test_one_more_row_comes_without_a_script(site: Site, boss: Browser) -> None:
    sent = _form(site, boss, "/admin/qos/urgent/edit", add="max_tres_per_user", priority="77")
    answer = boss.post("/admin/qos/urgent/edit", sent)
    assert answer.status_code == 200
    assert answer.text.count('name="max_tres_per_user.number"') == 2
    assert 'value="77"' in answer.text


def test_hostile_texts_of_the_form_stay_texts(site: Site, boss: Browser) -> None:
    evil = "<script>alert(1)</script>"
    rows = {"grp_tres__resource": [evil], "grp_tres__number": [evil]}
    for typed in (
        {"description": evil, **rows}, {"reason": evil + "\x00"}, {"priority": "9" * 5000},
        {"key": "k" * 9000, "priority": "12"}, {"shown": evil}, {"flags": [evil]},
        {"zero": [evil], "grp_jobs": "٣"},
    ):  # fmt: skip
        sent = _form(site, boss, "/admin/qos/normal/edit") | {
            key.replace("__", "."): value for key, value in typed.items()
        }
        answer = boss.post("/admin/qos/normal/edit", sent)
        assert answer.status_code in {303, 422}
        assert evil not in answer.text


def test_a_reason_is_kept_and_shown_as_text(site: Site, boss: Browser) -> None:
    place = _propose(site, boss, "/admin/qos/normal/edit", priority="3", reason="<b>deadline</b>")
    page = boss.get(place).text
    assert "&lt;b&gt;deadline&lt;/b&gt;" in page
    assert "<b>deadline" not in page


def test_a_retired_qos_leaves_the_groups_and_comes_back(site: Site, boss: Browser) -> None:
    answer = boss.post("/admin/qos/urgent/retire", {"key": "r1"})
    assert answer.status_code == 303
    page = boss.get(answer.location).text
    assert "is retired" in page
    boss.post(f"{answer.location}/apply")
    assert "urgent" not in site.broker.policy.accounts["nlp"].policy.qos
    assert "Retired" in boss.get("/admin/qos").text
    back = boss.post("/admin/qos/urgent/back")
    boss.post(f"{back.location}/apply")
    assert "Bring back" not in boss.get("/admin/qos/urgent").text


def test_who_keeps_a_qos_that_retires_is_named(site: Site, boss: Browser) -> None:
    assert "of their own in Slurm" not in boss.get("/admin/qos/urgent/retire").text
    own = replace(site.broker.associations()[0], qos=("normal", "urgent"))
    rest, qos = site.broker.associations()[1:], site.broker.qos()
    accounts = site.broker.accounts()
    with site.begin() as session:
        snapshot.replace_policy(
            session,
            associations=(own, *rest),
            qos=qos,
            accounts=accounts,
            fair_shares=(),
        )
    page = boss.get("/admin/qos/urgent/retire").text
    assert f"{own.user} ({own.account})" in page
    assert page.count("(nlp)") == 1


def test_a_default_needs_another_before_it_retires(site: Site, boss: Browser) -> None:
    answer = boss.post("/admin/qos/normal/retire", {"key": "r2"})
    assert answer.status_code == 422
    assert "Choose another default that biolab may use" in answer.text
    answer = boss.post("/admin/qos/normal/retire", {"key": "r2", "replacement": "spot"})
    assert answer.status_code == 303


def test_a_groups_policy_is_edited_the_same_way(site: Site, boss: Browser) -> None:
    place = _propose(site, boss, "/admin/policy/groups/biolab/edit", qos=["normal"], shares="40",
                     grp_jobs="5")  # fmt: skip
    page = boss.get(place).text
    assert "40 shares" in page
    boss.post(f"{place}/apply")
    found = site.broker.policy.accounts["biolab"].policy
    assert (found.qos, found.shares, found.grp_jobs) == (("normal",), 40, 5)


def test_drift_is_shown_and_adopted_or_restored(site: Site, boss: Browser) -> None:
    policy = site.broker.policy
    policy.qos["spot"] = replace(policy.qos["spot"], priority=11)
    policy.qos["urgent"] = replace(policy.qos["urgent"], priority=12)
    _worker_looks(site)
    assert "drift" in boss.get("/admin/qos").text
    todo = boss.get("/admin").text
    assert "Behind the portal&#39;s back somebody changed QoS spot in Slurm." in todo
    assert 'href="/admin/qos/spot"' in todo
    page = boss.get("/admin/qos/spot").text
    assert "Slurm has something else" in page
    adopted = boss.post("/admin/qos/spot/adopt", {"shown": _shown(page)})
    assert adopted.location.endswith("/history")
    assert "adopted from Slurm" in boss.get("/admin/qos/spot/history").text
    assert policy.qos["spot"].priority == 11
    restored = boss.post("/admin/qos/urgent/restore")
    assert policy.qos["urgent"].priority == 12  # a proposal first
    boss.post(f"{restored.location}/apply")
    assert policy.qos["urgent"].priority == 1000


def test_what_nobody_saw_is_not_adopted(site: Site, boss: Browser) -> None:
    policy = site.broker.policy
    policy.qos["spot"] = replace(policy.qos["spot"], priority=11)
    _worker_looks(site)
    shown = _shown(boss.get("/admin/qos/spot").text)
    policy.qos["spot"] = replace(policy.qos["spot"], priority=99)
    _worker_looks(site)
    boss.post("/admin/qos/spot/adopt", {"shown": shown})
    assert "adopted from Slurm" not in boss.get("/admin/qos/spot/history").text


def test_a_change_for_a_time_begins_and_goes_back(site: Site, boss: Browser) -> None:
    place = _lower(site, boss)
    assert boss.post(f"{place}/times", {"starts_at": "soon"}).status_code == 422
    early = {"starts_at": "2026-03-08T00:00", "ends_at": "2026-03-07T00:00"}
    answer = boss.post(f"{place}/times", early)
    assert answer.status_code == 422
    assert "The end must come after the start" in answer.text
    now = site.broker.now
    starts = now.replace(year=now.year + 1).strftime("%Y-%m-%dT%H:%M")
    assert boss.post(f"{place}/times", {"starts_at": starts, "ends_at": ""}).status_code == 303
    boss.post(f"{place}/apply")
    assert "that is done at its start" in boss.get(place).text
    assert site.broker.policy.qos["normal"].max_tres_per_user == ()
    site.broker.advance(366 * 86400)
    policy_apply.apply_due(begin=site.begin, broker=site.broker, now=site.broker.now)
    assert site.broker.policy.qos["normal"].max_tres_per_user == GPU_4


def test_a_withdrawn_change_cannot_be_applied(site: Site, boss: Browser) -> None:
    place = _lower(site, boss)
    assert boss.post(f"{place}/withdraw").status_code == 303
    answer = boss.post(f"{place}/apply")
    assert answer.status_code == 422
    assert "It does not wait for a decision any more." in answer.text
    assert site.broker.policy.qos["normal"].max_tres_per_user == ()
    assert boss.post(f"{place}/explode").status_code == 404


def test_where_two_must_agree_ones_own_yes_does_not_count(site: Site) -> None:
    _worker_looks(site)
    have = site.app.extensions["sluice"]
    settings = replace(have.settings, policy_second_approval=True)
    site.app.extensions["sluice"] = replace(have, settings=settings)
    b.add_person(site.begin, "other", role="administrator")
    boss, other = site.signed_in("boss"), site.signed_in("other")
    place = _lower(site, boss)
    assert "Another administrator has to approve it" in boss.get(place).text
    assert "1 change waits for another administrator&#39;s yes." in other.get("/admin").text
    for act in ("apply", "approve"):
        assert boss.post(f"{place}/{act}").status_code == 422
    assert site.broker.policy.qos["normal"].max_tres_per_user == ()
    assert other.post(f"{place}/approve").status_code == 303
    assert site.broker.policy.qos["normal"].max_tres_per_user == GPU_4


def test_jobs_are_killed_only_by_a_tick(site: Site, boss: Browser) -> None:
    _running_job(site)
    rows = {"max_tres_minutes_per_job__resource": ["gres/gpu"],
            "max_tres_minutes_per_job__number": ["1"]}  # fmt: skip
    place = _propose(site, boss, "/admin/qos/normal/edit", **rows)
    page = boss.get(place).text
    assert "1 running job will or may be killed." in page
    assert "QoS normal · Each job" in page
    assert "/jobs/1" in page
    refused = boss.post(f"{place}/apply")
    assert refused.status_code == 422
    assert "Say with the tick that running jobs may be killed." in refused.text
    assert site.broker.policy.qos["normal"].max_tres_minutes_per_job == ()
    assert boss.post(f"{place}/apply", {"kills": "yes"}).status_code == 303
    assert site.broker.policy.qos["normal"].max_tres_minutes_per_job == tres({"gres/gpu": 1})


def _running_job(site: Site) -> None:
    site.portal.submit()
    site.portal.deliver_due()
    site.broker.advance(3600)
    site.look()
    with site.begin() as session:
        assert session.get_one(t.Job, 1).state == "RUNNING"


def test_the_past_is_replayed_when_somebody_asks(site: Site, boss: Browser) -> None:
    place = _lower(site, boss)
    assert "There is no history yet." not in boss.get(place).text
    assert "There is no history yet." in boss.get(f"{place}?days=30").text
    for typed in ("0", "x", "99999", "-1", "٣"):
        assert "Type days from 1 to 3650." in boss.get(f"{place}?days={typed}").text


def test_the_pages_speak_chinese(site: Site, boss: Browser) -> None:
    boss.post("/settings", {"language": "zh_Hans", "timezone": ""})
    place = _lower(site, boss)
    for path in (*PAGES, *FORMS, place):
        answer = boss.get(path)
        assert answer.status_code == 200
        assert 'lang="zh-Hans"' in answer.text
