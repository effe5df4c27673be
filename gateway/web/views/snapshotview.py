"""Snapshots as their pages show them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway.core.access import Viewer
from gateway.core.environments import Environment
from gateway.core.snapshots import Doubt, Rights, Shared, form_name
from gateway.services import snapshots
from gateway.store.snapshots import SnapshotRow
from gateway.web.show import size_text
from gateway.web.snapshot_texts import DOUBTS, SHARED
from gateway.web.texts import gettext, ngettext

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

_SHOWN = 4  # packages in a line of the list


@dataclass(frozen=True, slots=True)
class Line:
    """One snapshot: `doubts` are sentences, `packages` the first of what was added."""

    row: SnapshotRow
    rights: Rights
    size: str
    new: str
    packages: str
    shared: str
    doubts: tuple[str, ...]

    @property
    def form_name(self) -> str:
        return form_name(self.row.digest)


@dataclass(frozen=True, slots=True)
class Part:
    """Lines under one word; no page shows an empty one."""

    title: str
    lines: tuple[Line, ...]


def parts(
    session: "Session", rows: Sequence[SnapshotRow], viewer: Viewer, known: Sequence[Environment]
) -> list[Part]:
    """One's own, those of the groups, the site's, and first what waits for an agreement."""
    doubts = snapshots.doubts_of(session, rows, known)
    lines = [line(row, viewer, doubts[row.id]) for row in rows]
    own = [one for one in lines if one.rights.own]
    others = [one for one in lines if not one.rights.own]

    def of(shared: Shared) -> tuple[Line, ...]:
        return tuple(one for one in others if one.row.shared is shared)

    found = [
        Part(gettext("To agree to"), of(Shared.ASKED)),
        Part(gettext("Mine"), tuple(own)),
        Part(gettext("Shared with my groups"), of(Shared.GROUP)),
        Part(gettext("The site's"), of(Shared.SITE)),
    ]
    return [part for part in found if part.lines]


def line(row: SnapshotRow, viewer: Viewer, doubts: Sequence[Doubt]) -> Line:
    """With the sentences that belong to it."""
    return Line(
        row=row,
        rights=snapshots.rights_of(viewer, row),
        size=size_text(row.bytes),
        new=size_text(row.new_bytes),
        packages=_packages(row.document.added),
        shared=str(SHARED[row.shared]) % {"group": row.group or ""},
        doubts=tuple(str(DOUBTS[one]) % {"base": row.document.base.name} for one in doubts),
    )


def affected_lines(session: "Session") -> list[tuple[snapshots.Affected, str]]:
    """`torch-2.13 changed: 3 snapshots of 2 people lie above what it was`."""
    found = []
    for one in snapshots.affected(session):
        count = ngettext("%(num)s snapshot", "%(num)s snapshots", one.snapshots)
        people = ngettext("%(num)s person", "%(num)s people", one.people)
        text = gettext(
            "%(base)s has changed: %(snapshots)s of %(people)s lie above what it was.",
            base=one.name,
            snapshots=count,
            people=people,
        )
        found.append((one, text))
    return found


def _packages(added: Sequence[str]) -> str:
    names = [one.partition("==")[0] for one in added]
    if len(names) <= _SHOWN:
        return ", ".join(names)
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + " " + gettext("and %(num)s more", num=more)
