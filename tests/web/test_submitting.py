"""The form: what it offers, what it says at a field, what it keeps, and that it submits once."""

import re
from collections.abc import Callable

import pytest

from tests.web.conftest import Site

Fill = Callable[..., dict[str, str]]


def test_it_offers_only_what_the_person_may_use(site: Site) -> None:
    page = site.signed_in("vision-1").get("/submit").text
    assert '<option value="vision" selected>' in page
    assert 'value="nlp"' not in page


def test_it_opens_on_the_sites_first_template(site: Site) -> None:
    page = site.signed_in().get("/submit").text
    choices = re.findall(r'name="template" value="([a-z0-9-]+)"( checked)?', page)
    assert choices[:3] == [("single-gpu", ""), ("ddp", " checked"), ("fsdp", "")]
    assert [name for name, checked in choices if checked] == ["ddp"]


def test_a_person_without_a_group_is_told_what_to_do(site: Site) -> None:
    assert "You cannot submit jobs yet" in site.signed_in("boss").get("/submit").text


def test_a_submit_leads_to_the_job_and_its_output(site: Site, filled: Fill) -> None:
    browser = site.signed_in()
    answer = browser.post("/submit", filled())
    assert answer.status_code == 303
    assert answer.location.startswith("/jobs/")
    site.broker.advance(1)
    piece = browser.get(f"{answer.location}/output?offset=-60000").get_json()
    assert "on a100-1,a100-2" in piece["text"]
    assert piece["ended"] is False


def test_pressing_twice_is_one_job(site: Site, filled: Fill) -> None:
    browser = site.signed_in()
    first, second = (browser.post("/submit", filled()) for _ in range(2))
    assert first.location == second.location
    assert len(site.broker.jobs) == 1


def test_a_refused_form_keeps_everything_and_offers_what_works(site: Site, filled: Fill) -> None:
    browser = site.signed_in()
    form = filled(nodes="9", time_limit="9-00:00:00", **{"v-arguments": "--lr '1e 3'"})
    answer = browser.post("/submit", form)
    assert answer.status_code == 422
    assert "2 fields need another value" in answer.text
    assert "--lr &#39;1e 3&#39;" in answer.text
    assert 'value="nodes=4"' in answer.text
    assert 'value="time_limit=7-00:00:00"' in answer.text
    assert "Longer than the partition allows (7 days)." in answer.text
    assert site.broker.jobs == {}


def test_a_suggestion_is_taken_with_one_press(site: Site, filled: Fill) -> None:
    answer = site.signed_in().post("/submit", filled(nodes="9") | {"try": "nodes=4"})
    assert answer.status_code == 200
    assert 'name="nodes" type="text" value="4"' in answer.text
    assert site.broker.jobs == {}


def test_the_time_limit_is_read_back_in_words(site: Site, filled: Fill) -> None:
    answer = site.signed_in().post("/submit/preview", filled(time_limit="30:00"))
    assert "30 minutes" in answer.text


def test_the_preview_shows_the_script_and_writes_nothing(site: Site, filled: Fill) -> None:
    browser, before = site.signed_in(), list(site.broker.calls)
    answer = browser.post("/submit/preview", filled())
    assert "2 nodes × 4 = 8 GPUs" in answer.text
    assert "#SBATCH --gpus-per-node=4" in answer.text
    assert site.broker.calls == before


def test_what_is_unfinished_is_not_yet_a_mistake(site: Site, filled: Fill) -> None:
    answer = site.signed_in().post("/submit/preview", filled(name="", time_limit=""))
    assert 'class="problem"' not in answer.text


def test_a_lost_group_is_told_at_the_field(site: Site, filled: Fill) -> None:
    answer = site.signed_in("vision-1").post("/submit", filled())
    assert answer.status_code == 422
    assert "You do not belong to nlp" in answer.text


def test_a_folder_that_is_not_there_is_told_at_the_field(site: Site, filled: Fill) -> None:
    answer = site.signed_in().post("/submit", filled(working_directory="/home/nlp-1/none"))
    assert answer.status_code == 422
    assert "There is no such folder." in answer.text


@pytest.mark.parametrize("name", ["x" * 300, "job\nname", "rocket 🚀", "-dash", "a;b"])
def test_an_odd_name_is_refused_and_kept(site: Site, filled: Fill, name: str) -> None:
    answer = site.signed_in().post("/submit", filled(name=name))
    assert answer.status_code == 422
    assert site.broker.jobs == {}


def test_a_huge_form_is_refused_politely(site: Site, filled: Fill) -> None:
    answer = site.signed_in().post("/submit", filled(**{"v-arguments": "x" * 5_000_000}))
    assert answer.status_code == 413
    assert "more than the portal takes at once" in answer.text


def test_without_slurm_the_submission_waits_and_says_so(site: Site, filled: Fill) -> None:
    site.broker.unreachable = True
    browser = site.signed_in()
    answer = browser.post("/submit", filled())
    assert answer.location.startswith("/submissions/")
    assert "it will be sent by itself" in browser.get(answer.location).text
    assert "it will be sent by itself" in browser.get("/jobs").text
    site.broker.unreachable = False
    site.broker.advance(60)
    site.portal.deliver_due()
    assert browser.get(answer.location).location.startswith("/jobs/")


def test_a_refusal_by_slurm_is_a_sentence_that_helps(site: Site, filled: Fill) -> None:
    site.broker.refuse_next("association_submit_limit")
    browser = site.signed_in()
    answer = browser.post("/submit", filled())
    page = browser.get(answer.location).text
    assert "Your group has as many jobs in the queue as it may." in page
    assert "Submit again with changes" in page


def test_what_waits_can_be_taken_back(site: Site, filled: Fill) -> None:
    site.broker.unreachable = True
    browser = site.signed_in()
    place = browser.post("/submit", filled()).location
    assert browser.post(f"{place}/withdraw").status_code == 303
    assert "Taken back before Slurm had it" in browser.get(place).text


def test_an_earlier_submission_is_loaded_again(site: Site, filled: Fill) -> None:
    browser = site.signed_in()
    browser.post("/submit", filled(name="first-try", nodes="3"))
    page = browser.get("/submit?from=1").text
    assert 'value="first-try"' in page
    assert 'name="nodes" type="text" value="3"' in page
    assert site.signed_in("nlp-2").get("/submit?from=1").status_code == 404


def test_slurms_estimate_is_asked_for_only_by_the_button(site: Site, filled: Fill) -> None:
    browser = site.signed_in()
    browser.get("/submit")
    assert "estimate" not in site.broker.calls
    answer = browser.post("/submit/estimate", filled(), headers={"HX-Request": "true"})
    assert "Estimate by Slurm" in answer.text


def test_the_script_can_be_had_as_a_file(site: Site, filled: Fill) -> None:
    answer = site.signed_in().post("/submit/script", filled())
    assert answer.headers["Content-Disposition"] == 'attachment; filename="ddp.sbatch"'
    assert answer.text.startswith("#!")


def test_a_changed_template_brings_its_own_fields(site: Site, filled: Fill) -> None:
    form = filled(template="command", name="ddp")
    answer = site.signed_in().post("/submit/choices", form, headers={"HX-Request": "true"})
    assert 'name="v-command"' in answer.text
    assert 'name="v-script"' not in answer.text
    assert 'name="name" type="text" value="command"' in answer.text


def test_ones_own_environment_is_a_path(site: Site, filled: Fill) -> None:
    browser = site.signed_in()
    chosen = filled(environment="own")
    asked = browser.post("/submit/choices", chosen, headers={"HX-Request": "true"})
    assert 'name="v-environment_path"' in asked.text
    preview = browser.post("/submit/preview", chosen | {"v-environment_path": "/home/nlp-1/venv"})
    assert ". /home/nlp-1/venv/bin/activate" in preview.text
    refused = browser.post("/submit", chosen | {"v-environment_path": "venv"})
    assert refused.status_code == 422
    assert "Type a path that begins with a slash." in refused.text
    assert 'value="venv"' in refused.text


def test_a_note_finds_the_field_of_a_template(site: Site, filled: Fill) -> None:
    answer = site.signed_in().post("/submit/preview", filled(**{"v-script": "../up.py"}))
    assert '<span id="note-v-script" hx-swap-oob="true"><span class="problem"' in answer.text


FOLDED, UNFOLDED = '<details id="more-fields">', '<details id="more-fields" open>'


@pytest.mark.parametrize(
    ("values", "look"),
    [
        ({}, FOLDED),
        ({"v-checkpoint_hours": "2", "v-stop_with": "file", "v-run_name": ""}, FOLDED),
        ({"v-checkpoint_hours": ""}, FOLDED),
        ({"v-checkpoint_hours": "0.5"}, UNFOLDED),
        ({"v-run_name": "llama-7b"}, UNFOLDED),
        ({"v-checkpoint_keep": "0"}, UNFOLDED),
    ],
)
def test_what_most_people_leave_alone_is_folded_away(
    site: Site, filled: Fill, values: dict[str, str], look: str
) -> None:
    page = site.signed_in().post("/submit/choices", filled(**values)).text
    assert look in page
    assert page.index('name="v-script"') < page.index(look) < page.index('name="v-run_name"')


def test_the_script_gets_what_is_typed_in_the_folded_part(site: Site, filled: Fill) -> None:
    browser = site.signed_in()
    typed = {"v-checkpoint_hours": "0.5", "v-datasets": "/data/a /data/b", "v-max_restarts": "0"}
    script = browser.post("/submit/script", filled(**typed)).text
    assert "\nexport SLUICE_CHECKPOINT_SECONDS=1800\n" in script
    assert "\nDATASETS=(/data/a /data/b)\n" in script
    assert "\nexport SLUICE_MAX_RESTARTS=0\n" in script
    refused = browser.post("/submit", filled(**(typed | {"v-datasets": "data"})))
    assert refused.status_code == 422
    assert UNFOLDED in refused.text
    assert "There is no dataset data for you." in refused.text


def test_an_array_is_read_back_in_words(site: Site, filled: Fill) -> None:
    browser = site.signed_in()
    sweep = {"template": "sweep", "shown_template": "sweep", "nodes": "1", "nproc_per_node": "1"}
    table = {"v-table": "lr,batch\r\n0.1,32\r\n0.01,64\r\n0.001,64", "v-max_at_once": "2"}
    form = filled(**sweep, **table)
    said = browser.post("/submit/preview", form).text
    assert '<span class="reading">3 tasks, 2 at a time</span>' in said
    assert "3 tasks, 2 at a time; each: 1 node × 1 = 1 GPU (a100)" in said
    assert "row --lr=0.01 --batch=64" in said
    page = browser.post("/submit", form | {"v-table": "lr,batch\n0.1"})
    assert page.status_code == 422
    assert "Row 1 has 1 values; there are 2 names." in page.text
    assert ">\nlr,batch\n0.1</textarea>" in page.text
    assert browser.post("/submit", form).status_code == 303
    assert len(site.broker.jobs) == 3


def test_what_has_no_shape_is_told_together_with_what_breaks_a_rule(
    site: Site, filled: Fill
) -> None:
    form = filled(nodes="9", gpu_type="", form_key="k" * 65, qos="")
    answer = site.signed_in().post("/submit", form)
    assert answer.status_code == 422
    assert "3 fields need another value" in answer.text
    assert "At most 64 characters." in answer.text
    assert 'value="nodes=4"' in answer.text
    assert site.broker.jobs == {}


def test_a_template_that_is_gone_is_told_at_its_field(site: Site, filled: Fill) -> None:
    answer = site.signed_in().post("/submit", filled(template="gone", name="typed"))
    assert "This template is gone." in answer.text
    assert 'value="typed"' in answer.text
