"""The columnar history for commands that read it, on hosts with a worker and without."""

from pathlib import Path

from gateway.cli.common import database, has_database, now
from gateway.config import Settings
from gateway.services import keep_history


def history_in_step(found: Settings) -> Path:
    """The history's folder, as new as the database; without one there are imported sets alone."""
    folder = found.home / "history"
    if has_database(found):
        with database() as begin, database(read_only=True) as read:
            keep_history.in_step(folder, begin=begin, read=read, now=now())
    return folder
