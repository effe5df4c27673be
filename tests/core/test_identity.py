"""The same Slurm id: another run of the job, or another job?"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from gateway.core.identity import Stint, is_requeue_of, token_in

NINE = datetime(2026, 3, 2, 9, tzinfo=UTC)
HOUR = timedelta(hours=1)
RUN = Stint("member", "train", NINE, NINE + HOUR, 0, may_return=False, token=None)
NEXT = replace(RUN, submit=NINE + HOUR, end=None, restarts=1)


@pytest.mark.parametrize(
    ("earlier", "later", "same"),
    [
        ({}, {}, True),
        ({"end": None}, {}, True),
        ({}, {"user": "other"}, False),
        ({}, {"name": "other"}, False),
        ({}, {"submit": NINE}, False),
        ({}, {"restarts": 0}, False),
        ({"restarts": 1}, {}, True),
        ({"restarts": 2}, {}, False),
        ({"may_return": True}, {"restarts": 0}, True),
        ({"may_return": True}, {"restarts": 0, "submit": NINE + 2 * HOUR}, False),
        ({}, {"submit": NINE + 3 * HOUR}, False),
        ({"may_return": True}, {"submit": NINE + 9 * HOUR, "restarts": 2}, True),
        ({"token": "a"}, {"token": "b"}, False),
        ({"token": "a"}, {"token": "a", "restarts": 0, "name": "other"}, True),
        ({"token": "a"}, {}, True),
    ],
)
def test_requeue_or_reuse(earlier, later, same):
    assert is_requeue_of(replace(RUN, **earlier), replace(NEXT, **later)) is same


@pytest.mark.parametrize(
    ("comment", "token"),
    [
        ("sluice:abc", "abc"),
        ("sluice:abc def", "abc"),
        ("sluice:", None),
        ("sluice:" + "x" * 200, None),
        ("my run", None),
        ("", None),
        (None, None),
    ],
)
def test_the_token_in_a_comment(comment, token):
    assert token_in(comment) == token
