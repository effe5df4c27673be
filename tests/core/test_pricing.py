"""Prices and the laying of a bill over the pots: exact, never cheaper in parts."""

import itertools
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from gateway.core.credits import MILLION, Credits
from gateway.core.pots import Pot, PotKind, lay, take, usable
from gateway.core.pricing import (
    Bill,
    Item,
    NoPrice,
    Preempted,
    Price,
    PriceList,
    QosTerms,
    Usage,
    affordable,
    bill,
    cost,
)

AT = datetime(2026, 3, 2, 8, tzinfo=UTC)
DAY = timedelta(days=1)
LIST = PriceList(
    (
        Price("rtx4090", Credits(1_200_000), AT - DAY),
        Price("a100", Credits(3_500_000), AT - DAY),
        Price("a100", Credits(4_000_000), AT + DAY),
        Price("cpu", Credits(10_000), AT + DAY),
    ),
    (QosTerms("spot", 820_000, Preempted.FREE, AT - DAY),),
)


def total(usage, *, qos="normal", at=AT):
    found = bill(usage, qos=qos, at=at, prices=LIST)
    assert isinstance(found, Bill)
    return found.total


def test_the_published_prices():
    assert total(Usage(8 * 3600, {"rtx4090": 1})) == 9_600_000
    assert total(Usage(12 * 3600, {"a100": 8})) == 336_000_000
    assert total(Usage(3600, {"rtx4090": 1}), qos="spot") == 984_000
    assert total(Usage(3600, {"rtx4090": 1}), qos="SPOT") == 984_000


def test_the_row_in_force_when_it_started():
    assert total(Usage(3600, {"a100": 1}), at=AT + DAY) == 4_000_000
    assert total(Usage(3600, {"a100": 1}, cpus=16)) == 3_500_000
    assert total(Usage(3600, {"a100": 1}, cpus=16), at=AT + DAY) == 4_160_000


def test_no_price_is_not_zero():
    assert bill(Usage(1, {"h200": 1}), qos=None, at=AT, prices=LIST) == NoPrice("h200")
    early = bill(Usage(1, {"a100": 1}), qos=None, at=AT - 2 * DAY, prices=LIST)
    assert early == NoPrice("a100")
    assert not LIST.is_on(AT - 2 * DAY)


def test_a_second_is_never_free():
    assert cost(1, 1, 1) == 1


amounts = st.integers(0, 10**13)
rates = st.tuples(st.integers(0, 10**9), st.integers(0, 2 * MILLION))


@given(st.integers(0, 10**9), st.integers(0, 10**9), rates)
def test_in_two_parts_it_never_costs_less(one, other, rate):
    assert cost(one, *rate) + cost(other, *rate) - cost(one + other, *rate) in (0, 1)


@given(amounts, rates)
def test_what_is_affordable_is_paid_by_it_and_no_second_more(credit, rate):
    most = affordable(credit, *rate)
    if most is None:
        assert rate[0] * rate[1] == 0
        return
    assert cost(most, *rate) <= credit < cost(most + 1, *rate)


kinds = st.sampled_from([PotKind.PACKAGE, PotKind.GRANT, PotKind.LOAN])


@st.composite
def some_pots(draw):
    pots = [Pot(1, PotKind.BALANCE, draw(st.integers(-(10**9), 10**9)), AT - DAY)]
    for number in range(draw(st.integers(0, 5))):
        kind = draw(kinds)
        package = kind is PotKind.PACKAGE
        ends = draw(st.one_of(st.none(), st.integers(1, 100)))
        pots.append(
            Pot(
                number + 2,
                kind,
                draw(st.integers(0, 10**9)),
                AT - DAY,
                AT + ends * DAY if ends else None,
                draw(st.sampled_from(["a100", "rtx4090"])) if package else None,
                draw(st.integers(0, 10**7)) if package else None,
            )
        )
    return usable(pots, now=AT, started=AT)


some_items = st.lists(
    st.builds(
        Item,
        st.sampled_from(["a100", "rtx4090", "cpu"]),
        st.integers(0, 64),
        st.integers(0, 10**6),
        st.integers(0, 10**7).map(Credits),
        st.integers(0, 2 * MILLION),
    ),
    max_size=3,
    unique_by=lambda item: item.resource,
).map(lambda items: Bill(tuple(items)))


@given(some_items, some_pots())
def test_a_bill_is_paid_in_full_and_only_the_balance_is_overdrawn(asked, pots):
    cover = lay(asked, pots)
    drawn = cover.by_pot()
    for pot in pots:
        if pot.kind is not PotKind.BALANCE:
            assert drawn.get(pot.id, 0) <= pot.left
            if pot.kind is PotKind.PACKAGE:
                mine = {line.resource for line in cover.lines if line.pot_id == pot.id}
                assert mine <= {pot.resource}
        else:
            assert cover.short == max(0, drawn.get(pot.id, 0) - max(0, pot.left))
    for item in asked.items:
        lines = [line for line in cover.lines if line.resource == item.resource]
        assert sum(line.unit_seconds for line in lines) == item.unit_seconds
    assert sum(drawn.values()) == cover.total


@given(some_items, some_pots())
def test_packages_first_then_what_expires_first_then_the_balance(asked, pots):
    cover = lay(asked, pots)
    drawn = cover.by_pot()
    money = [pot for pot in pots if pot.kind is not PotKind.PACKAGE]
    for earlier, later in itertools.pairwise(money):
        if drawn.get(later.id):
            assert drawn.get(earlier.id, 0) == max(0, earlier.left)


@given(amounts, some_pots())
def test_taking_never_takes_what_is_not_there(amount, pots):
    taken = take(amount, pots)
    assert sum(taken.values()) == min(amount, sum(max(0, pot.left) for pot in pots))
    assert all(taken.get(pot.id, 0) <= max(0, pot.left) for pot in pots)


def test_a_package_keeps_its_card_hours_when_the_price_rises():
    package = Pot(2, PotKind.PACKAGE, 9_000_000, AT - DAY, AT + DAY, "rtx4090", 900_000)
    pots = usable([package, Pot(1, PotKind.BALANCE, 0, AT - DAY)], now=AT, started=AT)
    item = Item("rtx4090", 10, 3600, Credits(5_000_000), MILLION)
    cover = lay(Bill((item,)), pots)
    assert (cover.by_pot(), cover.short) == ({2: 9_000_000}, 0)
