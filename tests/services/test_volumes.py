"""Volumes in the portal: made, read, limited, charged; and who dies when."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from gateway.core.access import Role
from gateway.core.credits import MILLION
from gateway.core.volumes import Ask, State
from gateway.errors import BrokerSilent, NotFound, Refused
from gateway.services import credit, volume_charges, volume_read
from gateway.services import volume_entries as entries
from gateway.services import volume_requests as requests
from gateway.services.verify import verify
from gateway.services.volume_entries import Wish
from gateway.store import volume_work as work
from gateway.store import volumes as store
from gateway.store.queries import group_credit, statement
from gateway.testing import builders as b
from gateway.testing.fakebroker import FakeBroker

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
ZONE = ZoneInfo("Asia/Shanghai")
GB, TB = 2**30, 2**40


@pytest.fixture
def broker():
    return FakeBroker(now=NOW)


@pytest.fixture
def people(begin):
    """An administrator, a leader, a member and a stranger."""
    ids = {name: b.add_person(begin, name) for name in ("root-1", "lead", "member", "other")}
    b.add_associations(begin, b.association("lead", "nlp"), b.association("member", "nlp"))

    def of(name, **values):
        given = {"person_id": ids[name], "groups": ("nlp",), "leads": ()} | values
        return b.viewer(name, **given)

    return {
        "admin": of("root-1", groups=(), role=Role.ADMINISTRATOR),
        "lead": of("lead", leads=("nlp",)),
        "member": of("member"),
        "other": of("other", groups=("vision",)),
    }


@pytest.fixture
def look(begin, broker):
    def now(at=NOW):
        return volume_read.look(begin=begin, broker=broker, now=at, zone=ZONE)

    now()
    return now


@pytest.fixture
def home(begin, broker, people, look):
    """A volume of a TB, the group's."""
    wish = Wish("volumes", "nlp-home", "nlp", TB)
    return entries.create(wish, viewer=people["admin"], begin=begin, broker=broker, now=NOW).id


def row(begin, volume_id):
    with begin() as session:
        return store.get(session, volume_id)


def told(begin, group="nlp"):
    with begin() as session:
        return [(one.kind, one.facts) for one in group_credit.notices(session, group)]


def use(broker, used, name="nlp-home", **values):
    broker.volume_state.change(name, used_bytes=used, **values)


def test_a_volume_is_made_and_is_there(begin, broker, home):
    made = row(begin, home)
    assert (made.state, made.path, made.limit_bytes) == (State.THERE, "/volumes/nlp-home", TB)
    assert (made.used_bytes, made.problem, made.owner) == (0, None, "nlp")


def test_what_the_broker_refuses_leaves_nothing(begin, broker, people, home):
    for wish, code, field in (
        (Wish("volumes", "nlp-home", "nlp", TB), "volume_exists", "name"),
        (Wish("volumes", "Bad", "nlp", TB), "volume_bad_name", "name"),
        (Wish("nowhere", "fresh", "nlp", TB), "no_such_area", "area"),
        (Wish("archive", "fresh", "nlp", TB), "volume_no_limits", "size"),
        (Wish("volumes", "fresh", "nosuch", TB), "no_such_group", "group"),
        (Wish("volumes", "fresh", "nlp", TB, owner="nosuch"), "volume_no_such_group", "owner"),
    ):
        with pytest.raises(Refused) as no:
            entries.create(wish, viewer=people["admin"], begin=begin, broker=broker, now=NOW)
        assert (no.value.code, no.value.field) == (code, field)
    with begin() as session:
        assert [one.name for one in store.every(session)] == ["nlp-home"]


def test_who_may_not_make_is_told_nothing(begin, broker, people, look):
    for name in ("lead", "member", "other"):
        with pytest.raises(NotFound):
            entries.create(
                Wish("volumes", "x", "nlp"),
                viewer=people[name],
                begin=begin,
                broker=broker,
                now=NOW,
            )


def test_a_maker_that_died_after_the_broker_is_gone_on_with(begin, broker, people, look):
    broker.silent_after_next()
    wish = Wish("volumes", "half", "nlp", TB)
    made = entries.create(wish, viewer=people["admin"], begin=begin, broker=broker, now=NOW)
    assert made.state is State.MAKING
    later = NOW + timedelta(minutes=2)
    volume_read.look_when_due(begin=begin, broker=broker, now=later, zone=ZONE)
    assert row(begin, made.id).state is State.THERE
    assert broker.calls.count("make-volume") == 1


def test_a_maker_that_died_before_the_broker_is_gone_on_with(begin, broker, people, look):
    broker.silent_before_next()
    wish = Wish("volumes", "half", "nlp", TB)
    made = entries.create(wish, viewer=people["admin"], begin=begin, broker=broker, now=NOW)
    assert ("volumes", "half") not in broker.volume_state.rows
    volume_read.look_when_due(begin=begin, broker=broker, now=NOW, zone=ZONE)
    assert row(begin, made.id).state is State.THERE
    assert broker.volume_state.rows["volumes", "half"].limit_bytes == TB


def test_figures_are_read_once_an_hour(begin, broker, home):
    def due(minutes):
        at = NOW + timedelta(minutes=minutes)
        return volume_read.look_when_due(begin=begin, broker=broker, now=at, zone=ZONE)

    assert due(30) is None
    use(broker, 5 * GB)
    assert due(61).volumes == 1
    assert row(begin, home).used_bytes == 5 * GB


def test_figures_are_read_soon_after_a_job_failed_there(begin, broker, home):
    def due(minutes):
        at = NOW + timedelta(minutes=minutes)
        return volume_read.look_when_due(begin=begin, broker=broker, now=at, zone=ZONE)

    def ends(folder, state):
        job = b.add_job(begin, working_directory=folder, state=state)
        b.add_run(begin, job, state=state, end_time=NOW + timedelta(minutes=5))

    ends("/volumes/nlp-home-not", "FAILED")
    ends("/volumes/nlp-home/exp", "COMPLETED")
    assert due(6) is None
    ends("/volumes/nlp-home/exp", "FAILED")
    assert due(1) is None  # read a minute ago
    assert due(6).volumes == 1
    assert due(10) is None


def test_a_day_keeps_its_last_figures(begin, broker, home, look):
    for hour, used in ((0, 1), (1, 2), (5, 3)):  # 12:00 UTC is 20:00 there: the third is tomorrow
        use(broker, used * GB)
        look(NOW + timedelta(hours=hour))
    with begin() as session:
        days = store.days(session, home, since=NOW.date())
    assert [(one.day.day, one.used) for one in days] == [(30, 2 * GB), (1, 3 * GB)]


def test_the_group_is_told_at_80_90_and_100_percent(begin, broker, home, look):
    assert told(begin) == []
    for share, kind in ((80, "volume_fills"), (93, "volume_fills"), (100, "volume_full")):
        use(broker, TB * share // 100 + 1 if share < 100 else TB)
        look()
        assert told(begin) == [(kind, {"volume": "nlp-home", "group": "nlp", "percent": share})]
    use(broker, GB)
    look()
    assert told(begin) == []


def test_an_area_that_is_gone_is_never_shown_as_empty(begin, broker, home, look):
    use(broker, 900 * GB)
    look()
    areas = broker.volume_state.areas
    areas["volumes"] = replace(
        areas["volumes"], problem="volume_area_gone", total_bytes=None, free_bytes=None
    )
    look(NOW + timedelta(hours=2))
    kept = row(begin, home)
    assert (kept.used_bytes, kept.problem, kept.read_at) == (900 * GB, "volume_area_unread", NOW)
    assert told(begin, None) == []
    with begin() as session:
        gone = store.area(session, "volumes")
        assert (gone.problem, gone.free_bytes) == ("volume_area_gone", None)
        assert len(store.days(session, home, since=NOW.date())) == 1


def test_a_broker_that_does_not_answer_changes_nothing(begin, broker, home, look):
    before = row(begin, home)
    broker.unreachable = True
    assert look(NOW + timedelta(hours=2)).code == "slurm_unreachable"
    assert row(begin, home) == before


def test_what_somebody_removed_is_drift(begin, broker, home, look):
    use(broker, 5 * GB)
    look()
    del broker.volume_state.rows["volumes", "nlp-home"]
    look()
    gone = row(begin, home)
    assert (gone.used_bytes, gone.limit_bytes, gone.problem) == (None, None, "volume_gone")
    facts = {"volume": "nlp-home", "group": "nlp", "code": "volume_gone"}
    assert told(begin, None) == [("volume_drift", facts)]


def test_a_limit_that_somebody_set_is_drift_until_it_is_settled(begin, broker, people, home, look):
    broker.volume_state.change("nlp-home", limit_bytes=3 * TB)
    look()
    assert row(begin, home).problem == "volume_limit_differs"
    assert [kind for kind, _ in told(begin, None)] == ["volume_drift"]
    requests.take_as_it_is(home, viewer=people["admin"], begin=begin, now=NOW)
    look()
    assert (row(begin, home).problem, row(begin, home).wanted_bytes) == (None, 3 * TB)
    assert told(begin, None) == []
    with begin() as session:
        (one,) = work.requests(session, volume_id=home)
        assert (one.before_bytes, one.after_bytes, one.state) == (TB, 3 * TB, Ask.APPLIED)


def test_a_folder_that_was_there_is_taken_in_with_its_limit(begin, broker, people, look):
    from gateway.wire import volumes as vol

    broker.make_volume(vol.MakeVolume("volumes", "old", "nlp", 7 * GB))
    look()
    with begin() as session:
        assert [one.name for one in store.strangers(session)] == ["old"]
    made = entries.take_in("volumes", "old", "nlp", viewer=people["admin"], begin=begin, now=NOW)
    assert (made.state, made.limit_bytes, made.path) == (State.THERE, 7 * GB, "/volumes/old")
    look()
    assert row(begin, made.id).problem is None
    with begin() as session:
        assert store.strangers(session) == []


# Requests


def wanted(begin, people, home, size=2 * TB, who="member"):
    return requests.ask(home, size, "more data", viewer=people[who], begin=begin, now=NOW)


def given(begin, broker, people, who):
    return {"viewer": people[who], "begin": begin, "broker": broker, "now": NOW}


def test_a_request_is_agreed_written_read_back_and_kept(begin, broker, people, home):
    asked = wanted(begin, people, home)
    done = requests.agree(asked, "yes", **given(begin, broker, people, "admin"))
    assert (done.state, done.before_bytes, done.after_bytes) == (Ask.APPLIED, TB, 2 * TB)
    assert (done.by, done.decider, done.text, done.answer) == (
        "member",
        "root-1",
        "more data",
        "yes",
    )
    assert broker.volume_state.rows["volumes", "nlp-home"].limit_bytes == 2 * TB
    assert (row(begin, home).limit_bytes, row(begin, home).wanted_bytes) == (2 * TB, 2 * TB)


def test_a_leader_agrees_up_to_the_groups_cap(begin, broker, people, home):
    asked = wanted(begin, people, home)
    with pytest.raises(Refused, match="volume_over_cap"):
        requests.agree(asked, **given(begin, broker, people, "lead"))
    entries.set_cap("nlp", 2 * TB, viewer=people["admin"], begin=begin)
    assert requests.agree(asked, **given(begin, broker, people, "lead")).state is Ask.APPLIED
    beyond = wanted(begin, people, home, 3 * TB, "lead")
    with pytest.raises(Refused, match="volume_over_cap"):
        requests.agree(beyond, **given(begin, broker, people, "lead"))


def test_a_cap_is_of_all_volumes_together(begin, broker, people, home):
    entries.create(
        Wish("volumes", "second", "nlp", TB), viewer=None, begin=begin, broker=broker, now=NOW
    )
    entries.set_cap("nlp", 2 * TB, viewer=None, begin=begin)
    asked = wanted(begin, people, home, TB + GB)
    with pytest.raises(Refused, match="volume_over_cap"):
        requests.agree(asked, **given(begin, broker, people, "lead"))


def test_who_may_not_answer_is_told_nothing(begin, broker, people, home):
    asked = wanted(begin, people, home)
    for who in ("member", "other"):
        with pytest.raises(NotFound):
            requests.agree(asked, **given(begin, broker, people, who))
        with pytest.raises(NotFound):
            requests.refuse(asked, "no", viewer=people[who], begin=begin, now=NOW)
    with pytest.raises(NotFound):
        wanted(begin, people, home, who="other")
    with pytest.raises(NotFound):
        requests.set_limit(home, 2 * TB, **given(begin, broker, people, "lead"))


def test_a_refusal_has_a_reason(begin, broker, people, home):
    asked = wanted(begin, people, home)
    with pytest.raises(Refused, match="volume_reason_missing"):
        requests.refuse(asked, " ", viewer=people["lead"], begin=begin, now=NOW)
    requests.refuse(asked, "Clean up first.", viewer=people["lead"], begin=begin, now=NOW)
    with pytest.raises(Refused, match="volume_request_done"):
        requests.agree(asked, **given(begin, broker, people, "admin"))
    with begin() as session:
        one = work.request(session, asked)
        assert (one.state, one.answer, one.decider) == (Ask.REFUSED, "Clean up first.", "lead")


@pytest.mark.parametrize(
    ("size", "code"), [(TB, "volume_not_more"), (GB, "volume_not_more"), (2**61, "volume_bad_size")]
)
def test_what_is_no_growth_is_refused(begin, people, home, size, code):
    with pytest.raises(Refused, match=code):
        wanted(begin, people, home, size)


def test_one_request_at_a_time(begin, people, home):
    asked = wanted(begin, people, home)
    with pytest.raises(Refused, match="volume_request_open"):
        wanted(begin, people, home, 3 * TB)
    requests.withdraw(asked, viewer=people["member"], begin=begin, now=NOW)
    wanted(begin, people, home, 3 * TB)


def test_below_what_is_used_wants_a_second_word(begin, broker, people, home, look):
    use(broker, 600 * GB)
    look()
    with pytest.raises(Refused) as no:
        requests.set_limit(home, 500 * GB, **given(begin, broker, people, "admin"))
    assert (no.value.code, no.value.facts["used"]) == ("volume_below_use", 600 * GB)
    assert broker.volume_state.rows["volumes", "nlp-home"].limit_bytes == TB
    done = requests.set_limit(
        home, 500 * GB, below_use=True, **given(begin, broker, people, "admin")
    )
    assert (done.state, done.after_bytes) == (Ask.APPLIED, 500 * GB)
    assert row(begin, home).used_bytes == 600 * GB


def test_what_was_written_since_the_last_look_counts(begin, broker, people, home, look):
    """The broker looks again: the portal's figure may be an hour old."""
    use(broker, 600 * GB)
    done = requests.set_limit(home, 500 * GB, **given(begin, broker, people, "admin"))
    assert (done.state, done.code) == (Ask.FAILED, "volume_below_use")
    assert broker.volume_state.rows["volumes", "nlp-home"].limit_bytes == TB
    broker.silent_before_next()
    done = requests.set_limit(
        home, 500 * GB, below_use=True, **given(begin, broker, people, "admin")
    )
    assert done.state is Ask.AGREED
    # Whoever goes on with it knows that it was meant.
    assert requests.carry_on(begin=begin, broker=broker, now=NOW + timedelta(minutes=5)) == 1
    assert broker.volume_state.rows["volumes", "nlp-home"].limit_bytes == 500 * GB


def test_of_two_administrators_one_is_told_to_look_again(begin, broker, people, home):
    """The second one still sees the limit that was read before the first one changed it."""
    broker.volume_state.change("nlp-home", limit_bytes=4 * TB)
    done = requests.set_limit(home, 2 * TB, **given(begin, broker, people, "admin"))
    assert (done.state, done.code) == (Ask.FAILED, "volume_changed_meanwhile")
    assert broker.volume_state.rows["volumes", "nlp-home"].limit_bytes == 4 * TB


@pytest.mark.parametrize("when", ["silent_before_next", "silent_after_next"])
def test_a_kill_between_write_and_read_back_is_gone_on_with(begin, broker, people, home, when):
    getattr(broker, when)()
    done = requests.set_limit(home, 2 * TB, **given(begin, broker, people, "admin"))
    assert (done.state, done.code) == (Ask.AGREED, BrokerSilent.code)
    assert row(begin, home).limit_bytes == TB
    soon, later = NOW + timedelta(seconds=10), NOW + timedelta(minutes=2)
    assert requests.carry_on(begin=begin, broker=broker, now=soon) == 0  # it may still be at it
    assert requests.carry_on(begin=begin, broker=broker, now=later) == 1
    with begin() as session:
        one = work.request(session, done.id)
    assert (one.state, one.before_bytes, one.after_bytes) == (Ask.APPLIED, TB, 2 * TB)
    assert row(begin, home).limit_bytes == 2 * TB


# Money


def priced(begin, text="0.03", starts=None, area=""):
    entries.set_price(text, area=area, starts=starts, viewer=None, begin=begin, now=starts or NOW)


def lines(begin):
    with begin() as session:
        until = NOW + timedelta(days=400)
        found = statement.entries(
            session, "nlp", since=NOW - timedelta(days=400), until=until, kinds=("storage",)
        )
    return [(one.amount, one.note) for one in found]


def charge(begin, at):
    return volume_charges.charge_due(begin=begin, now=at, zone=ZONE)


DECEMBER_IS_OVER = datetime(2026, 12, 31, 16, 0, tzinfo=UTC)  # midnight in the site's zone


def test_a_month_is_charged_once_when_it_is_over(begin, broker, home, look):
    priced(begin)
    look()
    # November's last day began before the price did.
    assert charge(begin, DECEMBER_IS_OVER - timedelta(seconds=1)) == 0
    assert charge(begin, DECEMBER_IS_OVER) == 1
    assert charge(begin, DECEMBER_IS_OVER + timedelta(hours=1)) == 0
    assert lines(begin) == [(-30_720_000, "volumes/nlp-home 2026-12")]  # 1,024 GB at 0.03


def test_grants_pay_before_the_balance_which_may_be_overdrawn(begin, broker, home, look):
    priced(begin, starts=datetime(2026, 11, 30, 16, tzinfo=UTC))
    credit.grant("nlp", 10 * MILLION, reason="project", begin=begin, now=NOW)
    credit.top_up("nlp", 5 * MILLION, begin=begin, now=NOW)
    look(datetime(2026, 12, 1, 0, tzinfo=UTC))
    assert charge(begin, DECEMBER_IS_OVER) == 2
    assert sorted(amount for amount, _ in lines(begin)) == [-20_720_000, -10_000_000]
    assert verify(read=begin).broken == ()


def test_without_a_price_nothing_is_charged(begin, home, look):
    look()
    assert charge(begin, DECEMBER_IS_OVER) == 0


def test_a_retired_volume_is_charged_until_then(begin, broker, people, home, look):
    priced(begin, starts=datetime(2026, 11, 30, 16, tzinfo=UTC))
    look(datetime(2026, 12, 1, 0, tzinfo=UTC))
    middle = datetime(2026, 12, 10, 12, tzinfo=UTC)
    entries.retire(home, viewer=people["admin"], begin=begin, now=middle)
    charge(begin, DECEMBER_IS_OVER)
    charge(begin, DECEMBER_IS_OVER + timedelta(days=31))
    # Ten of 31 days of 30.72, rounded up once.
    assert [amount for amount, _ in lines(begin)] == [-9_909_678]
    with begin() as session:
        assert store.listed(session, ["nlp"]) == []


def test_what_more_costs_a_month(begin, home):
    priced(begin)
    with begin() as session:
        more = volume_charges.more_a_month(session, "volumes", TB, 3 * TB, now=NOW)
        assert more == 61_440_000
        assert volume_charges.more_a_month(session, "volumes", None, TB, now=NOW) is None
