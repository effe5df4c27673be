"""From the book to Slurm: lines are only added, a night is one run, and what differs alone is
written."""

from dataclasses import replace
from datetime import date, timedelta
from zoneinfo import ZoneInfo

import pytest

from gateway.core.contribution import Counted, Feed, Formula, Kind, Rules, Tier, Untouched
from gateway.core.credits import MILLION
from gateway.core.policy_change import ChangeState, Source
from gateway.errors import NotFound, Refused
from gateway.services import contribution, credit, lend, policy_apply, policy_drift, poll
from gateway.services import contribution_book as book
from gateway.services import policy_changes as changing
from gateway.services.policy_history import undo_change
from gateway.store import contribution as rows
from gateway.store.queries import policy_changes as changes
from gateway.store.uow import Begin
from gateway.testing.fakebroker import FakeBroker

ZONE = ZoneInfo("Asia/Shanghai")
MONEY = Kind(key="money", name="Money", unit="CNY", weight=MILLION)
RULES = Rules(kinds=(MONEY,), formula=Formula(base=100), automatic=True)
TODAY = date(2026, 3, 2)


@pytest.fixture
def broker(begin: Begin) -> FakeBroker:
    made = FakeBroker()
    look(begin, made)
    return made


def look(begin: Begin, broker: FakeBroker) -> None:
    assert poll.poll_policy(begin=begin, broker=broker, now=broker.now).error_code is None
    policy_drift.look(begin=begin, read=begin, now=broker.now)


def set_rules(begin: Begin, broker: FakeBroker, rules: Rules = RULES) -> int:
    with begin() as session:
        held = rows.version(session)
    expected = held.number if held else None
    return book.set_rules(rules, expected=expected, begin=begin, now=broker.now)


def bring(
    begin: Begin, broker: FakeBroker, amount: int, group: str = "nlp", *, key: str | None = None
) -> int:
    return book.add(
        group, "money", amount * MILLION, day=TODAY, key=key, begin=begin, now=broker.now
    )


def night(begin: Begin, broker: FakeBroker, hour: int = 3) -> rows.Run | None:
    return contribution.run_nightly(hour=hour, begin=begin, read=begin, now=broker.now, zone=ZONE)


def settle(begin: Begin, broker: FakeBroker) -> None:
    policy_apply.apply_due(begin=begin, broker=broker, now=broker.now, stopwatch=lambda: 0.0)


def shares(broker: FakeBroker) -> dict[str, int | None]:
    return {one.policy.name: one.policy.shares for one in broker.accounts()}


def state(begin: Begin, change_id: int | None) -> ChangeState:
    assert change_id is not None
    with begin() as session:
        row = changes.change(session, change_id)
    assert row is not None
    return row.state


def test_a_line_is_entered_once_for_its_key(begin: Begin, broker: FakeBroker) -> None:
    set_rules(begin, broker)
    assert bring(begin, broker, 5, key="k") == bring(begin, broker, 5, key="k")
    with pytest.raises(Refused) as refused:
        bring(begin, broker, 6, key="k")
    assert refused.value.code == "key_used"
    with begin() as session:
        assert len(rows.lines(session)) == 1


@pytest.mark.parametrize(
    ("group", "kind", "amount", "code"),
    [
        ("nosuch", "money", 1, "no_such_group"),
        ("nlp", "gold", 1, "contribution_no_kind"),
        ("nlp", "lent", 1, "contribution_from_ledger"),
        ("nlp", "money", 0, "amount_not_positive"),
        ("nlp", "money", 10**19, "contribution_amount"),
    ],
)
def test_what_cannot_be_a_line_is_refused(
    begin: Begin, broker: FakeBroker, group: str, kind: str, amount: int, code: str
) -> None:
    lent = Kind(key="lent", name="Lent", unit="CNY", weight=1, feed=Feed.LOANS)
    set_rules(begin, broker, replace(RULES, kinds=(lent, MONEY)))
    with pytest.raises(Refused) as refused:
        book.add(group, kind, amount, day=TODAY, begin=begin, now=broker.now)
    assert refused.value.code == code


def test_a_correction_is_a_new_line_and_only_one_can_stand_for_another(
    begin: Begin, broker: FakeBroker
) -> None:
    set_rules(begin, broker)
    first = bring(begin, broker, 5)
    given = {"day": TODAY, "ended_on": None, "note": "", "begin": begin, "now": broker.now}
    second = book.correct(first, amount=7, **given)  # type: ignore[arg-type]
    assert book.correct(first, amount=7, **given) == second  # type: ignore[arg-type]
    with pytest.raises(Refused) as refused:
        book.correct(first, amount=8, **given)  # type: ignore[arg-type]
    assert refused.value.code == "contribution_replaced"
    with begin() as session:
        assert [one.amount for one in rows.entries(session)] == [7]
        assert [one.entry.amount for one in rows.lines(session)] == [7, 5 * MILLION]
        assert [one.replaced for one in rows.lines(session)] == [False, True]
    book.take_back(second, note="wrong group", begin=begin, now=broker.now)
    with begin() as session:
        assert rows.entries(session) == []
        assert len(rows.lines(session)) == 3
    with pytest.raises(NotFound):
        book.take_back(99, note="", begin=begin, now=broker.now)


def test_an_end_before_its_beginning_is_refused(begin: Begin, broker: FakeBroker) -> None:
    set_rules(begin, broker)
    line = bring(begin, broker, 5)
    with pytest.raises(Refused) as refused:
        book.end(line, on=TODAY - timedelta(days=1), begin=begin, now=broker.now)
    assert refused.value.code == "ends_before_start"
    ended = book.end(line, on=TODAY, begin=begin, now=broker.now)
    with begin() as session:
        assert [(one.id, one.ended_on) for one in rows.entries(session)] == [(ended, TODAY)]


@pytest.mark.parametrize(
    ("rules", "code"),
    [
        (replace(RULES, kinds=(replace(MONEY, key="Money"),)), "contribution_kind_key"),
        (replace(RULES, kinds=(replace(MONEY, name=" \n"),)), "contribution_name"),
        (replace(RULES, kinds=(replace(MONEY, weight=-1),)), "contribution_weight"),
        (replace(RULES, kinds=(replace(MONEY, half_life_days=0),)), "contribution_half_life"),
        (replace(RULES, formula=Formula(least=0)), "contribution_bounds"),
        (replace(RULES, formula=Formula(least=5, most=4)), "contribution_bounds"),
        (replace(RULES, formula=Formula(most=2**31 - 1)), "contribution_bounds"),
        (replace(RULES, formula=Formula(scale=-1)), "contribution_scale"),
        (replace(RULES, tiers=(Tier(0, "urgent"),)), "contribution_points"),
        (replace(RULES, tiers=(Tier(1, "urgent"), Tier(2, "urgent"))), "contribution_tier_twice"),
        (replace(RULES, tiers=(Tier(1, "nosuch"),)), "contribution_no_qos"),
    ],
)
def test_rules_that_cannot_be_are_refused(
    begin: Begin, broker: FakeBroker, rules: Rules, code: str
) -> None:
    with pytest.raises(Refused) as refused:
        set_rules(begin, broker, rules)
    assert refused.value.code == code
    with begin() as session:
        assert rows.version(session) is None


def test_rules_have_versions_and_nobody_overwrites_another(
    begin: Begin, broker: FakeBroker
) -> None:
    first = set_rules(begin, broker)
    assert set_rules(begin, broker) == first, "nothing differs"
    second = set_rules(begin, broker, replace(RULES, automatic=False))
    with pytest.raises(Refused) as refused:
        book.set_rules(RULES, expected=first, begin=begin, now=broker.now)
    assert refused.value.code == "contribution_rules_changed"
    with begin() as session:
        assert [one.number for one in rows.versions(session)] == [second, first]


def test_a_kind_with_lines_stays(begin: Begin, broker: FakeBroker) -> None:
    other = replace(MONEY, key="node", counted=Counted.PER_DAY)
    set_rules(begin, broker, book.with_kind(RULES, other))
    bring(begin, broker, 5)
    set_rules(begin, broker, book.without_kind(RULES, "node"))
    with pytest.raises(Refused) as refused:
        set_rules(begin, broker, book.without_kind(RULES, "money"))
    assert refused.value.code == "contribution_kind_used"


def test_a_night_brings_the_shares_to_slurm_once(begin: Begin, broker: FakeBroker) -> None:
    set_rules(begin, broker)
    bring(begin, broker, 40)
    run = night(begin, broker)
    assert run is not None
    assert (run.groups, run.differing) == (len(shares(broker)), len(shares(broker)))
    settle(begin, broker)
    assert state(begin, run.change_id) is ChangeState.APPLIED
    assert shares(broker) == {name: 140 if name == "nlp" else 100 for name in shares(broker)}
    assert night(begin, broker) is None, "one a night"

    broker.advance(86400)
    again = night(begin, broker)
    assert again is not None
    assert (again.differing, again.change_id) == (0, None), "nothing differs, nothing is written"


def test_it_is_not_due_before_its_hour_nor_without_rules(begin: Begin, broker: FakeBroker) -> None:
    """08:00 UTC is 16 h in the site's zone."""
    assert night(begin, broker) is None
    set_rules(begin, broker)
    assert night(begin, broker, hour=17) is None
    assert night(begin, broker, hour=16) is not None


def test_it_is_not_due_before_slurm_was_read(begin: Begin) -> None:
    unread = FakeBroker()
    set_rules(begin, unread)
    assert night(begin, unread) is None


def test_killed_in_the_middle_it_proposes_once(
    begin: Begin, broker: FakeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_rules(begin, broker)
    bring(begin, broker, 40)
    with monkeypatch.context() as patch:
        patch.setattr(rows, "end_run", _dies)
        with pytest.raises(KeyboardInterrupt):
            night(begin, broker)
    settle(begin, broker)  # the worker applies it before the run is looked at again
    run = night(begin, broker)
    assert run is not None
    assert state(begin, run.change_id) is ChangeState.APPLIED
    with begin() as session:
        assert len(changes.changes(session)) == 1


def test_what_a_killed_run_left_waiting_gives_way_to_the_next_night(
    begin: Begin, broker: FakeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_rules(begin, broker, replace(RULES, automatic=False))
    bring(begin, broker, 100)
    with monkeypatch.context() as patched:
        patched.setattr(rows, "end_run", _dies)
        with pytest.raises(KeyboardInterrupt):
            night(begin, broker)
    broker.advance(86400)
    bring(begin, broker, 100)
    run = night(begin, broker)
    assert run is not None
    assert run.change_id == 2
    assert state(begin, 1) is ChangeState.WITHDRAWN


def _dies(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_with_automatic_off_it_waits_and_a_newer_one_takes_its_place(
    begin: Begin, broker: FakeBroker
) -> None:
    set_rules(begin, broker, replace(RULES, automatic=False))
    bring(begin, broker, 40)
    first = night(begin, broker)
    settle(begin, broker)
    assert first is not None
    assert state(begin, first.change_id) is ChangeState.PROPOSED
    assert set(shares(broker).values()) == {1}

    broker.advance(86400)
    same = night(begin, broker)
    assert same is not None
    assert same.change_id == first.change_id, "nothing new: the same proposal waits"

    bring(begin, broker, 2)
    broker.advance(86400)
    newer = night(begin, broker)
    assert newer is not None
    assert state(begin, first.change_id) is ChangeState.WITHDRAWN
    assert state(begin, newer.change_id) is ChangeState.PROPOSED


def test_slurm_that_does_not_answer_leaves_the_change_to_be_settled(
    begin: Begin, broker: FakeBroker
) -> None:
    set_rules(begin, broker)
    bring(begin, broker, 40)
    run = night(begin, broker)
    assert run is not None
    broker.unreachable = True
    settle(begin, broker)
    assert state(begin, run.change_id) is ChangeState.APPROVED
    broker.unreachable = False
    broker.silent_after_next()
    broker.advance(120)
    settle(begin, broker)
    assert state(begin, run.change_id) is ChangeState.UNKNOWN
    broker.advance(120)
    settle(begin, broker)
    assert state(begin, run.change_id) is ChangeState.APPLIED
    assert shares(broker)["nlp"] == 140


def test_a_change_is_undone_as_others_are(begin: Begin, broker: FakeBroker) -> None:
    set_rules(begin, broker)
    bring(begin, broker, 40)
    run = night(begin, broker)
    settle(begin, broker)
    assert run is not None
    assert run.change_id is not None
    broker.advance(60)
    back = changing.propose(
        undo_change(run.change_id, begin=begin),
        viewer=None,
        reason="",
        source=Source.UNDO,
        second_approval=False,
        key="undo",
        begin=begin,
        now=broker.now,
    )
    settle(begin, broker)
    assert state(begin, back) is ChangeState.APPLIED
    assert set(shares(broker).values()) == {1}


def test_what_somebody_changed_behind_the_portal_is_not_overwritten(
    begin: Begin, broker: FakeBroker
) -> None:
    set_rules(begin, broker)
    bring(begin, broker, 40)
    night(begin, broker)
    settle(begin, broker)
    there = broker.policy.accounts["nlp"]
    by_hand = replace(there, policy=replace(there.policy, shares=999))
    broker.policy.accounts["nlp"] = by_hand
    broker.advance(86400)
    look(begin, broker)
    bring(begin, broker, 10)
    with begin() as session:
        found = contribution.preview(session, RULES, now=broker.now, zone=ZONE)
    (nlp,) = [one for one in found.results if one.before.name == "nlp"]
    assert (nlp.untouched, nlp.changes) == (Untouched.DRIFTED, False)
    night(begin, broker)
    settle(begin, broker)
    assert shares(broker)["nlp"] == 999


def test_a_tier_gives_and_takes_the_qos_that_it_names(begin: Begin, broker: FakeBroker) -> None:
    before = {one.policy.name: set(one.policy.qos) for one in broker.accounts()}
    poor = next(name for name in before if "urgent" not in before[name])
    assert "urgent" in before["nlp"]
    set_rules(begin, broker, Rules(kinds=(MONEY,), tiers=(Tier(30 * MILLION, "urgent"),)))
    bring(begin, broker, 40, poor)
    run = contribution.compute(
        "hand", second_approval=False, viewer=None, begin=begin, now=broker.now, zone=ZONE
    )
    settle(begin, broker)
    assert state(begin, run.change_id) is ChangeState.APPLIED
    after = {one.policy.name: set(one.policy.qos) for one in broker.accounts()}
    assert after[poor] == before[poor] | {"urgent"}
    assert after["nlp"] == before["nlp"] - {"urgent"}
    assert set(shares(broker).values()) == {1}


def test_loans_and_money_paid_in_count_from_the_ledger_without_a_line(
    begin: Begin, broker: FakeBroker
) -> None:
    kinds = (
        Kind(key="lent", name="Lent", unit="CNY", weight=2 * MILLION, feed=Feed.LOANS),
        Kind(key="paid", name="Paid in", unit="CNY", weight=MILLION, feed=Feed.TOP_UPS),
    )
    rules = Rules(kinds=kinds, formula=Formula(base=0))
    credit.top_up("nlp", 50 * MILLION, begin=begin, now=broker.now)
    credit.top_up("nlp", -10 * MILLION, begin=begin, now=broker.now)
    given = {"begin": begin, "now": broker.now}
    loan = lend.lend("nlp", "vision", 30 * MILLION, due=None, key="l", **given)  # type: ignore[arg-type]
    lend.give_back(loan, 5 * MILLION, key="b", **given)  # type: ignore[arg-type]

    def points() -> int:
        with begin() as session:
            found = contribution.preview(session, rules, now=broker.now, zone=ZONE)
        return next(one.score.points for one in found.results if one.before.name == "nlp")

    assert points() == (25 * 2 + 40) * MILLION
    lend.give_back(loan, 25 * MILLION, key="c", **given)  # type: ignore[arg-type]
    assert points() == 40 * MILLION, "what came back counts no longer"


def test_what_the_portal_refuses_is_kept_with_the_run_and_tried_again(
    begin: Begin, broker: FakeBroker
) -> None:
    set_rules(begin, broker, replace(RULES, tiers=(Tier(MILLION, "urgent"),)))
    bring(begin, broker, 40, "biolab")
    gone = broker.policy.qos.pop("urgent")
    broker.advance(60)
    look(begin, broker)
    assert night(begin, broker) is None
    with begin() as session:
        (run,) = rows.runs(session)
    assert (run.done_at, run.error_code) == (None, "policy_unknown_qos")
    broker.policy.qos["urgent"] = gone
    broker.advance(60)
    look(begin, broker)
    done = night(begin, broker)
    assert done is not None
    assert done.error_code is None
