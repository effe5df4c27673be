"""What a reader of `sluice plan` must know of its numbers, in English."""

from gateway.core.planner.figures import Notice
from gateway.web.planner_words import CHANGES, FITS, NOTICES, SOURCES, SYMBOLS

__all__ = ["CHANGES", "FITS", "NOTICES", "SOURCES", "SYMBOLS", "told"]


def told(one: Notice) -> str:
    return NOTICES[one.code] % dict(one.facts)
