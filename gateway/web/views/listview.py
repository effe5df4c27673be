"""What the template of the job list gets."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from gateway.store.queries.job import SubmissionRow
from gateway.web.messages import sentence
from gateway.web.show import submission_text
from gateway.web.views.freshness import Fresh
from gateway.web.views.joblist import Chip, Head, Row


@dataclass(frozen=True, slots=True)
class WaitingLine:
    """A submission that Slurm does not have yet, or has refused."""

    id: int
    state: str
    name: str
    template: str
    created_at: datetime
    text: str


@dataclass(frozen=True, slots=True)
class ListView:
    chips: list[Chip]
    set: list[Chip]
    carried: list[tuple[str, str]]
    typed: dict[str, str]
    groups: tuple[str, ...]
    partitions: tuple[str, ...]
    states: list[tuple[str, str]]
    here: str
    waiting: list[WaitingLine]
    active: list[Row]
    active_url: str | None
    rows: list[Row]
    heads: list[Head]
    priced: bool
    filtered: bool
    range: str
    previous: str | None
    next: str | None
    fresh: Fresh


def waiting_lines(rows: Iterable[SubmissionRow]) -> list[WaitingLine]:
    return [
        WaitingLine(row.id, row.state, row.name, row.template, row.created_at, _text(row))
        for row in rows
    ]


def _text(row: SubmissionRow) -> str:
    """For a refusal the reason; for the rest what will happen by itself."""
    if row.state == "refused":
        return sentence(row.error_code or "slurm_refused")
    return submission_text(row.stage)
