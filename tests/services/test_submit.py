"""Submit: each way the call can end, and exactly one job or none after each."""

import threading
from dataclasses import replace

import pytest

from gateway.core.manifest import Text
from gateway.errors import BrokerRefused, BrokerUnreachable, Busy, NotFound, Refused
from gateway.services import submit as submitting
from gateway.services.draft import InvalidAsk
from gateway.services.environments import Environment, EnvironmentKind
from gateway.store.uow import make_begin
from gateway.testing import builders as b
from gateway.testing.portal import ask, portal


def test_a_submission_becomes_the_job_that_the_page_showed(begin):
    site = portal(begin)
    submission = site.submission(site.submit())
    (job,) = site.jobs()
    assert submission.state == "accepted"
    assert submission.job_id == job.id
    assert (job.group, job.partition, job.qos, job.nodes, job.gpus) == (
        "nlp",
        "a100",
        "normal",
        2,
        8,
    )
    assert job.time_limit_minutes == 1440
    assert job.output == f"/home/nlp-1/train-{job.slurm_id}.out"
    assert "#SBATCH --account=nlp" in submission.script
    assert "#SBATCH --chdir=/home/nlp-1\n" in submission.script


def test_a_no_makes_no_job_and_keeps_the_code(begin):
    site = portal(begin)
    site.broker.refuse_next("invalid_qos")
    submission = site.submission(site.submit())
    assert (submission.state, submission.error_code) == ("refused", "invalid_qos")
    assert site.broker.jobs == {}
    assert site.jobs() == []


def test_a_broker_that_is_away_leaves_the_submission_in_the_outbox(begin):
    site = portal(begin)
    site.broker.unreachable = True
    submission = site.submission(site.submit())
    assert (submission.state, submission.error_code) == ("queued", "slurm_unreachable")
    site.run_outbox(seconds=60)
    assert site.submission(submission.id).state == "queued"
    site.broker.unreachable = False
    site.run_outbox(seconds=120)
    assert site.submission(submission.id).state == "accepted"
    assert len(site.broker.jobs) == 1


def test_the_pauses_grow_while_the_broker_is_away(begin):
    site = portal(begin)
    site.broker.unreachable = True
    site.submit()
    before = len(site.broker.calls)
    site.run_outbox(seconds=3600, step=2.0)
    assert 15 < len(site.broker.calls) - before < 40


def test_silence_after_a_yes_finds_the_job_and_makes_no_second(begin):
    site = portal(begin)
    site.broker.silent_after_next()
    submission = site.submission(site.submit())
    assert submission.state == "unknown"
    site.run_outbox(seconds=10)
    assert site.submission(submission.id).state == "accepted"
    assert len(site.broker.jobs) == 1
    assert site.broker.calls.count("submit") == 1


def test_silence_before_anything_sends_again_only_after_two_late_denials(begin):
    site = portal(begin)
    site.broker.silent_before_next()
    submission_id = site.submit()
    site.run_outbox(seconds=115)
    assert site.submission(submission_id).state == "unknown"
    assert site.broker.calls.count("submit") == 1
    site.run_outbox(seconds=400)
    assert site.submission(submission_id).state == "accepted"
    assert site.broker.calls.count("submit") == 2
    assert site.events(submission_id).count("denied") == 2
    assert len(site.broker.jobs) == 1


def test_a_job_that_shows_up_between_two_denials_is_the_one(begin):
    """Case 17: sometimes the check for the first job misses it and finds it much later."""
    site = portal(begin)
    site.broker.silent_after_next()
    submission_id = site.submit()
    hidden = dict(site.broker.jobs)
    site.broker.jobs.clear()
    site.run_outbox(seconds=150)
    assert "denied" in site.events(submission_id)
    site.broker.jobs.update(hidden)
    site.run_outbox(seconds=400)
    assert site.submission(submission_id).state == "accepted"
    assert site.broker.calls.count("submit") == 1


def test_a_process_that_died_after_the_yes_is_made_good_by_the_outbox(begin):
    site = portal(begin)
    _die_after(site, "submit")
    with pytest.raises(KeyboardInterrupt):
        site.submit()
    assert [job.request.name for job in site.broker.jobs.values()] == ["train"]
    site.run_outbox(seconds=300)
    (job,) = site.jobs()
    assert site.submission(1).job_id == job.id
    assert len(site.broker.jobs) == 1


def test_a_process_that_died_before_the_call_sends_once(begin):
    site = portal(begin)
    _die_before(site, "submit")
    with pytest.raises(KeyboardInterrupt):
        site.submit()
    site.run_outbox(seconds=900)
    assert site.submission(1).state == "accepted"
    assert len(site.broker.jobs) == 1


def test_two_posts_of_one_form_are_one_submission(begin):
    """Case 17 (b)."""
    site = portal(begin)
    first = site.submit()
    site.broker.advance(0.08)
    assert site.submit() == first
    assert len(site.broker.jobs) == 1


def test_two_posts_at_the_same_moment_are_one_submission(engine, begin):
    site = portal(begin)
    together = threading.Barrier(2)
    ids: list[int] = []

    def post() -> None:
        together.wait()
        ids.append(site.submit(begin=make_begin(engine)))

    threads = [threading.Thread(target=post) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(ids)) == 1
    assert len(site.broker.jobs) == 1


def test_another_form_is_another_job(begin):
    site = portal(begin)
    assert site.submit(key="one") != site.submit(key="two")
    assert len(site.broker.jobs) == 2


def moved_to_vision(broker, user):
    """As an administrator does it with sacctmgr, behind the portal's back."""
    broker.remove_member("nlp", user)
    broker.add_member("vision", user)
    broker.calls.clear()


def test_a_form_open_while_the_group_is_lost_is_refused(begin):
    site = portal(begin)
    moved_to_vision(site.broker, "nlp-1")
    site.poll_policy()
    with pytest.raises(InvalidAsk) as refused:
        site.submit()
    (problem,) = refused.value.problems
    assert (problem.field, problem.code) == ("group", "group_not_yours")
    assert problem.facts == {"group": "nlp"}
    assert "submit" not in site.broker.calls


def test_a_group_lost_after_the_last_poll_is_refused_by_slurm(begin):
    site = portal(begin)
    moved_to_vision(site.broker, "nlp-1")
    submission = site.submission(site.submit())
    assert (submission.state, submission.error_code) == ("refused", "invalid_account")


def test_a_home_elsewhere_is_where_the_broker_says(begin):
    site = portal(begin)
    real = site.broker.check_folder

    def elsewhere(path, *, user):
        found = real(path, user=user)
        return replace(found, path="/data/people/nlp-1") if path == "~" else found

    site.broker.check_folder = elsewhere
    request = site.submission(site.submit()).request
    assert request["working_directory"] == "/data/people/nlp-1"


def test_a_home_behind_a_link_keeps_the_name_that_people_use(begin):
    site = portal(begin)
    real = site.broker.check_folder
    site.broker.check_folder = lambda path, *, user: replace(
        real(path, user=user), path="/export/home/nlp-1"
    )
    submission = site.submission(site.submit())
    assert submission.request["working_directory"] == "/home/nlp-1"


def test_a_home_whose_path_no_directive_can_hold_is_told_at_the_field(begin):
    site = portal(begin)
    real = site.broker.check_folder
    site.broker.check_folder = lambda path, *, user: replace(
        real(path, user=user), path="/data/my home" if path == "~" else path
    )
    with pytest.raises(InvalidAsk) as refused:
        site.submit()
    (problem,) = refused.value.problems
    assert (problem.field, problem.code) == ("working_directory", "directive_refused")
    assert "submit" not in site.broker.calls


def test_a_broker_that_goes_away_between_two_looks_at_a_home_decides_nothing(begin):
    site = portal(begin)
    real = site.broker.check_folder

    def once(path, *, user):
        if path != "~":
            raise BrokerUnreachable("away")
        return replace(real(path, user=user), path="/export/nlp-1")

    site.broker.check_folder = once
    request = site.submission(site.submit()).request
    assert request["working_directory"] == "/export/nlp-1"


def test_a_script_that_slurm_would_not_take_is_told_before_it_is_kept(begin, monkeypatch):
    site = portal(begin)
    monkeypatch.setattr("gateway.services.draft.MAX_SCRIPT_BYTES", 100)
    with pytest.raises(InvalidAsk) as refused:
        site.submit()
    assert [p.code for p in refused.value.problems] == ["script_too_long"]


@pytest.mark.parametrize(
    ("folder", "code"),
    [
        ("/home/nlp-1/none", "folder_missing"),
        ("/home/nlp-2", "folder_not_permitted"),
        ("/home/nlp-1/file", "folder_not_a_folder"),
        ("/home/nlp-1/link", "folder_outside"),
        ("runs", "folder_not_absolute"),
        ("/home/nlp-1/../nlp-2", "folder_parent"),
        ("/home/nlp-1\n#SBATCH --account=richgroup", "folder_characters"),
    ],
)
def test_a_folder_that_cannot_be_is_a_problem_at_the_field(begin, folder, code):
    site = portal(begin)
    site.broker.files.write("/home/nlp-1/file", "nlp-1", "x")
    site.broker.files.links["/home/nlp-1/link"] = "/etc"
    with pytest.raises(InvalidAsk) as refused:
        site.submit(ask(working_directory=folder))
    (problem,) = refused.value.problems
    assert (problem.field, problem.code) == ("working_directory", code)
    assert site.broker.jobs == {}


@pytest.mark.parametrize(
    ("folder", "kept", "field"),
    [
        ("/home/nlp-1/a,b", "", "working_directory"),
        ("/home/nlp-1/a:b", "", "working_directory"),
        ("/home/nlp-1", "/home/nlp-1/a,b", "checkpoint_dir"),
        ("/home/nlp-1", "a:b", "checkpoint_dir"),
    ],
)
def test_a_path_that_ends_a_bind_does_not_go_with_an_image(begin, folder, kept, field):
    site = portal(begin)
    site.broker.files.add_folder(folder, "nlp-1")
    image = Environment("torch", Text("", ""), EnvironmentKind.APPTAINER, image="/opt/torch.sif")
    wanted = ask(
        working_directory=folder,
        environment="torch",
        values={"script": "train.py", "checkpoint_dir": kept},
    )
    with pytest.raises(InvalidAsk) as refused:
        site.submit(wanted, environments=(image,))
    (problem,) = refused.value.problems
    assert (problem.field, problem.code) == (field, "folder_characters")
    site.submit(replace(wanted, environment="none"))
    assert len(site.broker.jobs) == 1


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("x" * 300, "name_too_long"),
        ("train 🚀", "name_characters"),
        ("demo\n#SBATCH --account=richgroup\n#SBATCH --qos=urgent\nid > out", "name_characters"),
        ("demo\r#SBATCH --qos=urgent", "name_characters"),
        ("demo\u2028x", "name_characters"),
        ("demo\0", "name_characters"),
    ],
)
def test_a_name_that_could_be_a_directive_is_refused(begin, name, code):
    """Case 14: nothing submitted."""
    site = portal(begin)
    with pytest.raises(InvalidAsk) as refused:
        site.submit(ask(name=name))
    assert [(p.field, p.code) for p in refused.value.problems] == [("name", code)]
    assert "submit" not in site.broker.calls


@pytest.mark.parametrize("field", ["group", "partition", "qos", "gpu_type"])
def test_a_value_that_is_not_in_the_offer_never_reaches_slurm(begin, field):
    site = portal(begin)
    with pytest.raises(InvalidAsk) as refused:
        site.submit(ask(**{field: "x'; touch pwned; '"}))
    assert {problem.field for problem in refused.value.problems} == {field}
    assert "submit" not in site.broker.calls


def test_a_full_disk_keeps_nothing_and_says_so(engine, begin):
    site = portal(begin)
    with pytest.raises(Busy):
        site.submit(begin=_full_after(begin, transactions=0))
    assert site.broker.jobs == {}
    assert site.submit() == 1


def test_a_full_disk_after_the_yes_still_answers_the_submission(begin):
    site = portal(begin)
    submission_id = site.submit(begin=_full_after(begin, transactions=1))
    assert site.submission(submission_id).state == "sending"
    site.run_outbox(seconds=300)
    assert site.submission(submission_id).state == "accepted"
    assert len(site.broker.jobs) == 1


def test_a_job_that_differs_from_the_page_is_cancelled(begin):
    site = portal(begin)
    real = site.broker.submit

    def other(request):
        return replace(real(request), qos="urgent")

    site.broker.submit = other
    submission = site.submission(site.submit())
    assert (submission.state, submission.error_code) == ("refused", "accepted_differs")
    assert submission.error_text == "qos"
    assert [job.state for job in site.broker.jobs.values()] == ["CANCELLED"]


def test_what_was_refused_for_the_person_is_told_at_once(begin):
    site = portal(begin, user="nlp-1")
    viewer = replace(site.viewer, unix_user="root")
    b.add_associations(begin, b.association("root"))
    with pytest.raises(BrokerRefused) as refused:
        site.submit(viewer=viewer)
    assert refused.value.code == "root_refused"


def test_an_earlier_form_is_loaded_again_as_typed(begin):
    site = portal(begin)
    typed = ask(time_limit="2-12", nodes="3")
    submission_id = site.submit(typed)
    assert submitting.ask_of(submission_id, viewer=site.viewer, begin=begin) == typed
    job_id = site.jobs()[0].id
    assert submitting.ask_of_job(job_id, viewer=site.viewer, begin=begin) == typed


def test_another_persons_form_is_not_found(begin):
    site = portal(begin)
    submission_id = site.submit()
    stranger = replace(site.viewer, person_id=99)
    with pytest.raises(NotFound):
        submitting.ask_of(submission_id, viewer=stranger, begin=begin)


def test_a_form_without_a_key_is_refused(begin):
    site = portal(begin)
    with pytest.raises(Refused):
        site.submit(key="")


def _die_after(site, name):
    real = getattr(site.broker, name)

    def call(*given, **named):
        real(*given, **named)
        setattr(site.broker, name, real)
        raise KeyboardInterrupt

    setattr(site.broker, name, call)


def _die_before(site, name):
    real = getattr(site.broker, name)

    def call(*given, **named):
        setattr(site.broker, name, real)
        raise KeyboardInterrupt

    setattr(site.broker, name, call)


def _full_after(begin, *, transactions):
    """A store whose disk is full after so many transactions."""
    count = [0]

    def limited():
        count[0] += 1
        if count[0] > transactions:
            raise Busy("database or disk is full")
        return begin()

    return limited
