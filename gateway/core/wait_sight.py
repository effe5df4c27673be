"""What somebody may see of everybody's waits. The rule: docs/engineering/waits.md."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from gateway.core.access import Permission, Viewer
from gateway.core.wait_figures import Dimension, Question


class OfPeople(Protocol):
    """A figure that tells of how many other people than the asker's own it is made."""

    @property
    def others(self) -> int: ...


class Counted(OfPeople, Protocol):
    """One that tells of how many jobs, too."""

    @property
    def jobs(self) -> int: ...


T = TypeVar("T")
C = TypeVar("C", bound=Counted)


@dataclass(frozen=True, slots=True)
class Shown(Generic[T]):
    """The rows that may be seen, and how many may not."""

    rows: tuple[T, ...]
    hidden: int = 0


@dataclass(frozen=True, slots=True)
class Sight:
    """`least`: of so many other people at least a figure must be. `all`: nothing is hidden."""

    least: int
    all: bool
    user: str
    groups: tuple[str, ...]  # whose jobs one sees singly, beside one's own
    member: tuple[str, ...] = ()  # groups whose names one knows

    @classmethod
    def of(cls, viewer: Viewer, least: int) -> "Sight":
        sees_all = viewer.may(Permission.SEE_ALL_JOBS)
        return cls(least, sees_all, viewer.unix_user, viewer.leads, viewer.groups)

    def sees(self, figure: OfPeople) -> bool:
        """Of nobody else, or of enough people."""
        return self.all or figure.others == 0 or figure.others >= self.least

    def asked(self, question: Question) -> Question | None:
        """The question with whose rows are the asker's own; None where it may not be asked: about
        single people one may ask who they are oneself, or, of a leader, in the groups led."""
        asked = replace(question, own_user=self.user, own_groups=self.groups)
        users = question.only.get(Dimension.USER)
        if self.all or users is None or users == (self.user,):
            return asked
        return self._in_groups(asked)

    def by_person(self, question: Question) -> tuple[Question | None, Question | None]:
        """What tells persons apart: the question about the groups led, and that about oneself."""
        own = question.only.get(Dimension.USER, (self.user,))
        mine = (
            replace(question, only={**question.only, Dimension.USER: (self.user,)})
            if self.user in own
            else None
        )
        return self._in_groups(question), mine

    def _in_groups(self, question: Question) -> Question | None:
        wanted = question.only.get(Dimension.GROUP, self.groups)
        groups = tuple(group for group in self.groups if group in wanted)
        if not groups:
            return None
        return replace(question, only={**question.only, Dimension.GROUP: groups})


def shown(
    rows: Iterable[tuple[str, C]], sight: Sight, together: Callable[[tuple[str, ...]], int]
) -> Shown[tuple[str, C]]:
    """Rows whose sum is seen as well. `together`: how many other people the rows of these keys are
    of. So many are hidden that the sum less what is seen tells of enough people, too."""
    rows = list(rows)
    hidden = {key for key, figure in rows if not sight.sees(figure)}
    spare = sorted(
        (
            (figure.others, figure.jobs, key)
            for key, figure in rows
            if key not in hidden and figure.others
        ),
    )
    while hidden and spare and (len(hidden) < 2 or together(tuple(hidden)) < sight.least):
        hidden.add(spare.pop(0)[2])
    return Shown(tuple(row for row in rows if row[0] not in hidden), len(hidden))


def shown_parts(parts: Iterable[C], sight: Sight) -> Shown[C]:
    """Parts whose people are not told apart, such as hours, and may be the same ones: several are
    of as many people as one of them. Empty parts are left out."""
    named = {str(place): part for place, part in enumerate(parts) if part.jobs}
    found = shown(named.items(), sight, lambda keys: max(named[key].others for key in keys))
    return Shown(tuple(part for _, part in found.rows), found.hidden)
