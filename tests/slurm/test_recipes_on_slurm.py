"""A run becomes a recipe with its code, a colleague clones it on the same cluster, and the rerun
fits."""

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from gateway.core.access import Viewer
from gateway.core.recipes import Visibility
from gateway.services import (
    offer,
    recipe_clone,
    recipe_code,
    recipe_publish,
    recipe_reruns,
    training,
)
from gateway.services.environments import NONE
from gateway.services.recipe_publish import Typed
from gateway.store import recipe_reruns as reruns
from gateway.store import recipes as store
from gateway.store.uow import make_begin
from gateway.testing import builders as b
from gateway.testing.database import database
from gateway.testing.portal import Portal, ask, portal

pytestmark = pytest.mark.slurm
TRAIN = "print('::metric loss=' + str(2 / 3))\n"


@pytest.fixture
def site(tmp_path, broker, cluster_site):
    with database(tmp_path) as engine:
        made = portal(make_begin(engine), broker=broker, clock=lambda: datetime.now(UTC))
        made.hands = cluster_site
        yield made


def ran(site: Portal, wanted, viewer: Viewer, key: str) -> tuple[int, int]:
    """Submitted as that person, run, and read to its end: submission and job."""
    sent = site.submit(wanted, key=key, viewer=viewer)
    end = time.monotonic() + 120
    while True:
        site.deliver_due()
        site.work()
        found = site.submission(sent).job_id
        job = next((job for job in site.jobs() if job.id == found), None)
        if job is not None and not job.active and site.runs_of(job.id):
            break
        assert time.monotonic() < end, job and (job.state, job.reason)
        time.sleep(0.5)
    assert job.state == "COMPLETED", job.state
    for minutes in (3, 6, 20, 30):
        training.follow(
            begin=site.begin, read=site.begin, broker=site.broker,
            now=site.now + timedelta(minutes=minutes), budget_seconds=60,
        )  # fmt: skip
    return sent, job.id


@pytest.mark.timeout(300)
def test_a_colleague_repeats_a_run_and_it_fits(site: Portal) -> None:
    site.runs_of = lambda job_id: [run for run in site.runs() if run.job_id == job_id]
    folder = "/home/nlp-1/recipe"
    write = f"mkdir -p {folder} && cat > {folder}/train.py"
    site.hands.cluster.run(["sh", "-c", write], user="nlp-1", stdin=TRAIN)
    wanted = ask(
        template="command",
        nodes="1",
        nproc_per_node="1",
        time_limit="10",
        name="repeat",
        working_directory=folder,
        values={"command": "python3 train.py", "gpus_per_node": "1"},
    )
    _, job = ran(site, wanted, site.viewer, "first")
    code = recipe_code.capture(folder, viewer=site.viewer, broker=site.broker, since=None)
    assert code.files == {"train.py": TRAIN}
    made = recipe_publish.publish(
        job,
        Typed("Repeat me", visibility=Visibility.SITE),
        viewer=site.viewer,
        begin=site.begin,
        cards={},
        now=site.now,
        files=code.files,
    )

    person = b.add_person(site.begin, "nlp-2")
    colleague = b.viewer("nlp-2", person_id=person)
    with site.begin() as session:
        row = store.get(session, made, colleague)
    assert row is not None
    assert row.recipe.receipt.metrics["loss"] == pytest.approx(2 / 3)
    assert row.recipe.receipt.run_seconds >= 0
    filled = recipe_clone.clone(
        row,
        site=recipe_clone.Site(colleague, site.begin, site.catalogue, (NONE,), site.now),
    )
    assert not [one for one in filled.moved if one.left_out], filled.moved
    assert filled.ask.working_directory == "~"
    assert offer.offer(colleague, begin=site.begin).groups

    given = {"viewer": colleague, "begin": site.begin, "broker": site.broker}
    mine = recipe_code.lay(made, "~/recipes/repeat", **given)
    assert mine == "/home/nlp-2/recipes/repeat"
    again = replace(filled.ask, working_directory=mine)
    sent, _ = ran(site, again, colleague, "again")
    recipe_reruns.note(sent, made, row.recipe, again, is_check=True, begin=site.begin, now=site.now)
    options = {"begin": site.begin, "read": site.begin, "cards": {}}
    later = site.now + timedelta(minutes=30)
    assert recipe_reruns.judge_ended(**options, now=later) == 1
    with site.begin() as session:
        tally = reruns.tallies(session, [made])[made]
    assert (tally.compared, tally.within_1) == (1, 1)
