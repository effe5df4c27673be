"""Wire messages that the poll has put into the store, back as they were."""

import dataclasses
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")


def from_facts(kind: type[T], facts: Mapping[str, Any]) -> T:
    """Build a flat message. It was judged when the broker sent it: judging a thousand nodes again
    on each page view costs more than all the rest of the page."""
    known = _known(kind)  # type: ignore[arg-type]  # a class is hashable
    return kind(
        **{
            name: tuple(value) if isinstance(value, list) else value
            for name, value in facts.items()
            if name in known
        }
    )


@cache
def _known(kind: type) -> frozenset[str]:
    return frozenset(field.name for field in dataclasses.fields(kind))
