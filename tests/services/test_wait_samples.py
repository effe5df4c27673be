"""The sample site's history says something on each page of waits and use."""

from pathlib import Path

from gateway.core.wait_causes import Cause
from gateway.core.wait_figures import Dimension, Question
from gateway.services import keep_history
from gateway.services.waits import past_waits
from gateway.store.uow import Begin
from gateway.testing.builders import NOW
from gateway.testing.wait_samples import GROUPS, fill_waits


def test_the_sample_site_has_waits_of_each_group_with_known_causes(
    begin: Begin, read: Begin, tmp_path: Path
) -> None:
    fill_waits(begin, now=NOW, cluster="c", jobs=400)
    keep_history.keep(tmp_path, begin=begin, read=read, now=NOW)
    with past_waits(tmp_path) as past:
        groups = dict(past.by(Question(NOW), Dimension.GROUP))
        causes = past.causes(Question(NOW), None)[0].seconds
    assert set(groups) == set(GROUPS)
    assert all(figures.people >= 3 for figures in groups.values())
    assert all(figures.never_started for figures in groups.values())
    assert causes[Cause.UNKNOWN] == 0
    seen = {cause for cause, seconds in causes.items() if seconds}
    assert seen >= set(Cause) - {Cause.UNKNOWN, Cause.ARRAY_THROTTLE, Cause.RESERVATION}
