"""What a small site's groups brought, and how Slurm sees their use: for a look by hand."""

from datetime import datetime, timedelta

from gateway.core.contribution import Counted, Feed, Formula, Kind, Rules, Shape
from gateway.core.credits import MILLION
from gateway.services import contribution_book as book
from gateway.store.uow import Begin
from gateway.testing.fakebroker import FakeBroker
from gateway.wire.policy import FairShare

KINDS = (
    Kind(key="lent", name="Credit lent", unit="CNY", weight=10_000, half_life_days=90,
         feed=Feed.LOANS),
    Kind(key="money", name="Money paid in", unit="CNY", weight=2_000, half_life_days=365),
    Kind(key="node", name="Donated node", unit="node", weight=MILLION, half_life_days=180,
         counted=Counted.PER_DAY),
)  # fmt: skip
RULES = Rules(
    kinds=KINDS,
    formula=Formula(shape=Shape.SQUARE_ROOT, base=100, scale=10 * MILLION, most=1000),
)


def fill_contribution(begin: Begin, broker: FakeBroker, *, now: datetime) -> None:
    """Rules, some lines with a correction and an end, and fair shares of the three groups."""
    today = now.date()
    given = {"begin": begin, "now": now}
    book.set_rules(RULES, expected=None, **given)  # type: ignore[arg-type]
    lines = (
        ("nlp", "money", 120_000, 400, "grant of the ministry"),
        ("nlp", "node", 2, 150, "two nodes of eight cards"),
        ("vision", "money", 40_000, 20, ""),
        ("vision", "node", 1, 90, "on loan until summer"),
        ("biolab", "money", 9_000, 10, "entered for the wrong group"),
    )
    made = [
        book.add(
            group,
            kind,
            amount * MILLION,
            day=today - timedelta(days=ago),
            note=note,
            key=f"sample-{place}",
            **given,  # type: ignore[arg-type]
        )
        for place, (group, kind, amount, ago, note) in enumerate(lines)
    ]
    book.end(made[3], on=today - timedelta(days=15), **given)  # type: ignore[arg-type]
    book.take_back(made[4], note="entered for the wrong group", **given)  # type: ignore[arg-type]
    broker.policy.fair_share = (
        FairShare("nlp", None, None, 1, 0.33, 4_100_000, 0.51, None, 0.65),
        FairShare("vision", None, None, 1, 0.33, 3_400_000, 0.42, None, 0.79),
        FairShare("biolab", None, None, 1, 0.33, 560_000, 0.07, None, 4.71),
    )
