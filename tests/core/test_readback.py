from dataclasses import replace

import pytest

from gateway.core.readback import Shape, differences

ASKED = Shape("nlp", "normal", "a100", 2, 8, 60)


def test_the_same_job_has_no_difference():
    assert differences(ASKED, replace(ASKED)) == ()


def test_tasks_are_compared_where_they_were_counted():
    array = replace(ASKED, tasks=10)
    assert differences(array, replace(array, tasks=9)) == ("tasks",)
    assert differences(ASKED, array) == ("tasks",)
    assert differences(array, ASKED) == ()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("account", "vision"),
        ("qos", "spot"),
        ("partition", "rtx4090"),
        ("nodes", 1),
        ("gpus", 0),
        ("time_limit_minutes", None),
    ],
)
def test_each_field_that_a_person_pays_for_is_compared(field, value):
    assert differences(ASKED, replace(ASKED, **{field: value})) == (field,)
