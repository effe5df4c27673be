"""The group's rule for runs that stall reaches the scripts of its members, and says who set it."""

from sqlalchemy import select

from gateway.core.training.stalls import OnStall
from gateway.services.environments import NONE
from gateway.services.preview import preview
from gateway.services.training_rules import set_on_stall
from gateway.store import models as t
from gateway.store.queries import training
from gateway.store.uow import Begin
from gateway.testing import builders as b
from gateway.testing.portal import ask, portal


def test_the_script_carries_the_rule_of_its_group(begin: Begin) -> None:
    made = portal(begin)
    wanted = {"viewer": made.viewer, "begin": begin, "catalogue": made.catalogue}
    before = preview(ask(), environments=(NONE,), **wanted).script or ""
    assert set_on_stall("nlp", OnStall.REQUEUE, begin=begin, now=b.NOW, person_id=None)
    after = preview(ask(), environments=(NONE,), **wanted).script or ""
    assert "SLUICE_ON_STALL=nothing" in before
    assert "SLUICE_ON_STALL=requeue" in after


def test_each_change_is_an_event_with_who_made_it(begin: Begin) -> None:
    leader = b.add_person(begin, "leader")
    for rule in (OnStall.HOLD, OnStall.HOLD, OnStall.NOTHING):
        set_on_stall("nlp", rule, begin=begin, now=b.NOW, person_id=leader)
    with begin() as session:
        events = session.scalars(select(t.Event).order_by(t.Event.id)).all()
        rule = training.rule(session, "nlp")
        other = training.rule(session, "vision")
    assert [(one.kind, one.person_id, one.detail["after"]) for one in events] == [
        ("on_stall_set", leader, "hold"),
        ("on_stall_set", leader, "nothing"),
    ]
    assert (rule.on_stall, rule.at, rule.by) == ("nothing", b.NOW, "Leader")
    assert (other.on_stall, other.at) == ("nothing", None)
