"""The parts of the pages of use: what is asked, and its rows for a table and for a CSV alike."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from gateway.core.states import parse_state
from gateway.core.usage_figures import By, CardDay, Cards, LimitBin, Limits, LimitWait, Use
from gateway.core.wait_figures import UNKNOWN, Question
from gateway.core.wait_sight import Shown
from gateway.services import usage_history
from gateway.services.usage_history import PastUse, credit_seen
from gateway.store.queries.group_spend import Spend
from gateway.web import usage_tables as tables
from gateway.web.access import viewer
from gateway.web.deps import deps
from gateway.web.usage_charts import bin_word
from gateway.web.usage_tables import Column

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

T = TypeVar("T")
CROSSED = (By.MONTH, By.GPU_TYPE, By.STATE, By.GROUP)  # what goes across


@dataclass(frozen=True, slots=True)
class Part(Generic[T]):
    """`names` of the keys in a CSV; `hidden`: how many rows may not be seen."""

    names: tuple[str, ...]
    columns: Sequence[Column[T]]
    rows: tuple[tuple[tuple[str, ...], T], ...]
    hidden: int = 0

    def csv(self) -> Iterator[str]:
        return tables.csv_lines(self.names, self.columns, self.rows)


def use(past: PastUse, question: Question, by: Sequence[By]) -> Part[Use]:
    return _use(past.use(question, by), by)


def use_and_total(
    past: PastUse, question: Question, by: Sequence[By]
) -> tuple[Part[Use], Use | None]:
    """The total is None where it stands for too few people."""
    found, total = past.use_and_total(question, by)
    return _use(found, by), total


def _use(found: Shown[Use], by: Sequence[By]) -> Part[Use]:
    whole = sum(row.gpu_seconds for row in found.rows)
    credit = credit_seen(viewer())
    money = any(row.charge is not None for row in found.rows) or credit.all_groups
    columns = tables.use_columns(whole, money=money)
    rows = tuple((row.keys, row) for row in found.rows)
    return Part(tuple(one.value for one in by), columns, rows, found.hidden)


def failures(past: PastUse, question: Question, by: Sequence[By]) -> Part[Use]:
    """Runs that are over, and not as one wished: by state, or by another thing and state."""
    found = use(past, question, by)
    place = list(by).index(By.STATE)
    rows = tuple(row for row in found.rows if is_failure(row[0][place]))
    return Part(found.names, found.columns, rows, found.hidden)


def is_failure(state: str) -> bool:
    known = parse_state(state)[0] if state != UNKNOWN else None
    return known is not None and known.ends_run and not known.succeeded


def limits(past: PastUse, question: Question) -> Part[Limits]:
    found = past.limits(question)
    rows = tuple(((row.key or "",), row) for row in found.rows)
    return Part(("group",), tables.LIMITS, rows, found.hidden)


def bins(past: PastUse, question: Question) -> Part[LimitBin]:
    found: Shown[LimitBin] = past.limit_bins(question)
    rows = tuple(((bin_word(row),), row) for row in found.rows)
    return Part(("used_of_limit",), tables.BINS, rows, found.hidden)


def card_days(found: Sequence[Cards]) -> Part[CardDay]:
    rows = tuple(((one.gpu_type, day.day.isoformat()), day) for one in found for day in one.days)
    return Part(("gpu_type", "day"), tables.CARD_DAYS, rows)


def cards(past: PastUse, question: Question, session: "Session") -> list[Cards]:
    return past.cards(question, session, cluster=deps().settings.cluster_name)


def limit_waits(past: PastUse, question: Question) -> Part[LimitWait]:
    rows = tuple(((row.group,), row) for row in past.limit_waits(question))
    return Part(("group",), tables.LIMIT_WAITS, rows)


def ledger(question: Question, first: datetime | None) -> Part[Spend]:
    """What the statements of the groups say whose credit one may see."""
    with deps().read() as session:
        found = usage_history.spent(session, question, credit_seen(viewer()), first)
    rows = tuple(((row.group, row.month), row) for row in found)
    return Part(("group", "month"), tables.SPEND, rows)


def dimension(args: Any, name: str, default: By | None) -> By | None:
    """What stands in the address; what is not known counts as not there."""
    text = args.get(name, "").strip()
    return By(text) if text in set(By) else default


def across(by: By, given: By | None) -> By | None:
    """What goes across, where it is another thing."""
    return given if given in CROSSED and given is not by else None
