from typing import Any

from gateway.core.training.checkpoints import checkpoints, resumes_from
from gateway.core.training.lines import Event


def events(*given: tuple[str, int | None, dict[str, Any]]) -> list[Event]:
    return [Event(float(n), 0, kind, step, facts) for n, (kind, step, facts) in enumerate(given)]


def saved(step: int) -> tuple[str, int, dict[str, Any]]:
    return "saved", step, {"seconds": 1.0, "bytes": 10, "path": f"/c/{step}"}


def test_what_was_saved_and_not_deleted_is_there() -> None:
    found = checkpoints(events(saved(10), saved(20), saved(30), ("pruned", 10, {})))
    assert [(one.step, one.is_there) for one in found] == [(10, False), (20, True), (30, True)]
    taken = resumes_from(found)
    assert taken is not None
    assert taken.step == 30


def test_a_deleted_one_in_the_second_place_is_safe_and_a_restart_takes_a_local_one_first() -> None:
    uploaded = ("uploaded", 20, {"place": "rclone:a:b"})
    found = checkpoints(events(saved(10), saved(20), uploaded, ("pruned", 20, {})))
    assert [(one.step, one.local, one.is_safe) for one in found] == [
        (10, True, False),
        (20, False, True),
    ]
    taken = resumes_from(found)
    assert taken is not None
    assert taken.step == 10


def test_without_a_local_one_it_comes_back_from_the_second_place() -> None:
    uploaded, restored = ("uploaded", 20, {"place": "p"}), ("restored", 20, {"place": "p"})
    lost = checkpoints(events(saved(20), uploaded, ("pruned", 20, {})))
    assert resumes_from(lost) == lost[0]
    back = checkpoints(events(saved(20), uploaded, ("pruned", 20, {}), restored))
    assert back[0].local


def test_an_upload_that_failed_and_came_later_is_safe() -> None:
    failed, uploaded = ("upload_failed", 20, {"error": "full"}), ("uploaded", 20, {"place": "p"})
    assert checkpoints(events(saved(20), failed))[0].trouble == "full"
    later = checkpoints(events(saved(20), failed, uploaded))[0]
    assert (later.trouble, later.is_safe) == (None, True)


def test_what_a_framework_saved_is_known_when_it_is_resumed_from() -> None:
    start = ("start", None, {"resume_step": 40, "resume_path": "/c/checkpoint-40"})
    [one] = checkpoints(events(start))
    assert (one.step, one.path, one.local, one.bytes) == (40, "/c/checkpoint-40", True, None)


def test_a_save_that_failed_or_only_began_is_no_checkpoint() -> None:
    assert checkpoints(events(("save_begin", 5, {}), ("save_failed", 5, {"error": "full"}))) == []
    assert resumes_from([]) is None
