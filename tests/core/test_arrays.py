import pytest

from gateway.core.arrays import ArrayTasks, array_text, parse_array, ranges, tasks_of


@pytest.mark.parametrize(
    ("text", "count", "throttle"),
    [
        ("900_[60-89,91-94,96-98%10]", 37, 10),
        ("901_[9201-10000%500]", 800, 500),
        ("902_[1%1]", 1, 1),
        ("903_[0-20:5]", 5, None),
        ("0-20:5", 5, None),
        ("4103947_[91,100-102]", 4, None),
        ("7", 1, None),
    ],
)
def test_one_record_stands_for_many_tasks(text, count, throttle):
    assert parse_array(text) == ArrayTasks(count, complete=True, throttle=throttle)


@pytest.mark.parametrize(
    ("tasks", "at_once", "text"),
    [
        (1, None, "0"),
        (1, 1, "0"),
        (10, None, "0-9"),
        (10, 0, "0-9"),
        (10, 2, "0-9%2"),
        (10, 10, "0-9"),
        (1000, 999, "0-999%999"),
    ],
)
def test_an_array_is_written_as_it_is_read(tasks, at_once, text):
    assert array_text(tasks, at_once) == text
    assert parse_array(text).count == tasks


def test_a_cut_text_gives_a_lower_bound_and_no_count():
    tasks = parse_array("904_[1,3,5,7,...]")
    assert tasks.at_least == 4
    assert tasks.count is None


@pytest.mark.parametrize("text", ["", "a", "5-3", "0-4:0", "1%x", "[]", "1-2-3", "-4"])
def test_what_is_no_task_list_is_refused(text):
    with pytest.raises(ValueError, match="no "):
        parse_array(text)


def test_the_tasks_of_a_list_are_its_numbers_and_are_written_as_ranges():
    assert tasks_of("1,4-10:3,12-13%2", most=20) == {1, 4, 7, 10, 12, 13}
    assert ranges(tasks_of("0-20%2", most=21) - {0, 1, 7}) == "2-6,8-20"
    assert ranges({3}) == "3"
    assert tasks_of("0-20%2", most=20) == tasks_of("1,3,...", most=20) == frozenset()
