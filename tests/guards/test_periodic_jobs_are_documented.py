"""Each periodic job has its row in docs/engineering/polling.md, and each row its job."""

import re
from pathlib import Path

from gateway.worker.jobs import JOBS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "engineering" / "polling.md"
ROW = re.compile(r"^\| `(\w+)` \| (\d+) s \|", re.MULTILINE)


def test_the_list_in_the_docs_is_the_table_in_the_code():
    documented = {name: float(seconds) for name, seconds in ROW.findall(PAGE.read_text())}
    assert documented == {job.name: job.seconds for job in JOBS}


def test_each_job_says_what_it_does():
    assert all(job.run.__doc__ for job in JOBS)
