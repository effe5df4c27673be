"""`sluice waits --causes`: where the wait went, in the words of the page."""

from collections.abc import Iterator, Sequence
from typing import Any

from gateway.cli.waits_table import duration
from gateway.core.wait_causes import Cause
from gateway.core.wait_conclusion import conclude
from gateway.core.wait_figures import Dimension, Question
from gateway.core.wait_shapes import CausesRow


def facts(
    question: Question, whole: CausesRow | None, along: Dimension | None, rows: Sequence[CausesRow]
) -> dict[str, Any]:
    """As the API has it, with the conclusion: whole seconds, every cause, null where nobody did
    anything."""
    found: dict[str, Any] = {
        "timezone": question.zone,
        "causes": None if whole is None else _of(whole),
    }
    if along is not None:
        found |= {"by": along.value, "rows": [_of(row) for row in rows]}
    return found


def lines(whole: CausesRow | None, rows: Sequence[CausesRow]) -> list[str]:
    """A paragraph a key, and all together at the end."""
    if whole is None:
        return ["There are no jobs."]
    found: list[str] = []
    for name, row in (*((row.key, row) for row in rows), ("all", whole)):
        found += [*_paragraph(name, row), ""]
    return found[:-1]


def _of(row: CausesRow) -> dict[str, Any]:
    return {
        "key": row.key,
        "jobs": row.jobs,
        "wait_s": sum(row.seconds.values()),
        "seconds": {cause.value: row.seconds[cause] for cause in Cause},
        "conclusion": conclude(row.jobs, row.seconds).conclusion.value,
    }


def _paragraph(name: str, row: CausesRow) -> Iterator[str]:
    # Flask, which the texts of pages come with, is loaded by who asks for them alone.
    from gateway.web.wait_cause_texts import CAUSE_WORDS, english, share_text  # noqa: PLC0415

    whole = sum(row.seconds.values())
    jobs = "1 job" if row.jobs == 1 else f"{row.jobs:,} jobs"
    yield f"{name}: {jobs}, {duration(whole / row.jobs)} from submit to start on average."
    yield f"  {english(conclude(row.jobs, row.seconds))}"
    parts = sorted(((row.seconds[cause], cause) for cause in Cause), reverse=True)
    for seconds, cause in parts:
        if seconds:
            share, took = share_text(seconds / whole), duration(seconds)
            yield f"  {share:>6}  {CAUSE_WORDS[cause].english} ({took})"
