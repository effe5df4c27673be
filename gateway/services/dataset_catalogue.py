"""The catalogue as a person sees it: entries with their versions, who reads them, what they did."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway.core.access import Viewer
from gateway.services.dataset_entries import found, may_decide, may_steer
from gateway.store import dataset_work as work
from gateway.store import datasets as store
from gateway.store import people
from gateway.store.dataset_work import CheckRow
from gateway.store.datasets import DatasetRow, VersionRow
from gateway.store.queries import dataset_usage
from gateway.store.queries.dataset_usage import Usage

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


@dataclass(frozen=True, slots=True)
class Card:
    """An entry in the list. `newest`: the newest published version. `usable`: a form may have it.
    `open_versions`: drafts and requests, for who steers it."""

    row: DatasetRow
    newest: VersionRow | None
    usable: bool
    open_versions: int
    usage: Sequence[Usage]
    people: int

    @property
    def jobs(self) -> int:
        return sum(one.jobs for one in self.usage)


@dataclass(frozen=True, slots=True)
class Lineage:
    """`parent` is a word of the catalogue; `children` those made from it."""

    parent: str | None
    children: Sequence[str]


@dataclass(frozen=True, slots=True)
class Page:
    """One entry whole. Versions, newest first; drafts only for who steers it."""

    card: Card
    owner: str
    versions: Sequence[VersionRow]
    lineage: dict[int, Lineage]
    readers: Sequence[tuple[str, str]]
    checks: Sequence[CheckRow]
    steers: bool
    decides: bool


def cards(session: "Session", viewer: Viewer | None, *, words: str = "") -> list[Card]:
    """Those whose name, title, licence or description hold every word."""
    rows = store.seen(session, viewer)
    wanted = words.casefold().split()
    rows = tuple(row for row in rows if all(word in _text(row) for word in wanted))
    found_cards = [_card(session, row, viewer) for row in rows]
    return [one for one in found_cards if one.newest or may_steer(viewer, one.row)]


def page(session: "Session", name: str, viewer: Viewer | None) -> Page:
    """NotFound for what this person may not see."""
    row = found(session, name, viewer)
    card = _card(session, row, viewer)
    steers = may_steer(viewer, row)
    shown = (
        ("published", "withdrawn", "draft", "requested") if steers else ("published", "withdrawn")
    )
    every = [one for one in store.versions(session, [row.id]) if one.state in shown]
    owner = people.by_id(session, row.owner_id)
    return Page(
        card,
        owner.login if owner else "",
        every,
        {one.id: _lineage(session, one, viewer) for one in every},
        store.readers(session, row.id) if steers else (),
        work.checks(session, [one.id for one in every]),
        steers,
        may_decide(viewer, row),
    )


def _card(session: "Session", row: DatasetRow, viewer: Viewer | None) -> Card:
    versions = store.versions(session, [row.id])
    used = dataset_usage.usage(session, [row.id]).get(row.id, [])
    return Card(
        row,
        next((one for one in versions if one.state == "published"), None),
        viewer is None or store.usable(session, row.id, viewer),
        sum(one.state in {"draft", "requested"} for one in versions),
        used,
        dataset_usage.people(session, [row.id]).get(row.id, 0),
    )


def _lineage(session: "Session", version: VersionRow, viewer: Viewer | None) -> Lineage:
    """A name that this person may not see is not told."""
    parent = store.version(session, version.parent_id) if version.parent_id else None
    word = None
    if parent is not None:
        row = store.get(session, parent.dataset_id)
        known = row is not None and store.by_name(session, row.name, viewer) is not None
        word = f"{row.name}@{parent.version}" if known and row is not None else "?"
    children = [
        f"{name}@{number}"
        for name, number in store.children(session, version.id)
        if store.by_name(session, name, viewer) is not None
    ]
    return Lineage(word, children)


def _text(row: DatasetRow) -> str:
    return f"{row.name} {row.title} {row.licence} {row.description}".casefold()
