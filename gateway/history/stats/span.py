"""When the first and the last job of a question was submitted, and ended."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from gateway.core.wait_figures import Question
from gateway.core.wait_shapes import Span
from gateway.history.stats import chosen
from gateway.history.stats.columns import Part

if TYPE_CHECKING:
    import numpy as np

    Numbers = np.ndarray[Any, Any]


def span(parts: Sequence[Part], question: Question) -> Span:
    """Of all rows of the question, those that never started among them."""
    found = [chosen.rows(part, question, chosen.wanted(part, question)) for part in parts]
    some = [rows for rows in found if rows is not None]
    return Span(
        _bounds([rows.column("submit") for rows in some]),
        _bounds([end[end > 0] for end in (rows.column("end") for rows in some)]),
    )


def _bounds(columns: "Sequence[Numbers]") -> tuple[datetime, datetime] | None:
    known = [column for column in columns if column.size]
    if not known:
        return None
    first, last = min(int(c.min()) for c in known), max(int(c.max()) for c in known)
    return datetime.fromtimestamp(first, UTC), datetime.fromtimestamp(last, UTC)
