"""Which checkpoints a run has, and where: folded from its events, in the order of time."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from gateway.core.training.lines import Event


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """`local`: it should be in the run's own folder. `place`: the second place that has it too.

    `seconds` is how long the save held the training up; `bytes` its size. Both are None for what
    a framework saved by itself.
    """

    step: int
    at: float
    seconds: float | None = None
    bytes: int | None = None
    path: str | None = None
    local: bool = False
    place: str | None = None
    placed_at: float | None = None
    trouble: str | None = None  # why it is not in the second place

    @property
    def is_safe(self) -> bool:
        """It outlives the loss of the first place."""
        return self.place is not None

    @property
    def is_there(self) -> bool:
        return self.local or self.is_safe


def checkpoints(events: Iterable[Event]) -> list[Checkpoint]:
    """From the lowest step to the highest, with those that were deleted since."""
    found: dict[int, Checkpoint] = {}
    for event in events:
        step = event.facts.get("resume_step") if event.kind == "start" else event.step
        if isinstance(step, int):
            before = found.get(step, Checkpoint(step, event.at))
            after = _after(event, before)
            if after is not before:
                found[step] = after
    return [found[step] for step in sorted(found)]


def resumes_from(found: Sequence[Checkpoint]) -> Checkpoint | None:
    """The one that a restart would take: the newest in the first place; when that has none, the
    newest of the second."""
    local = [one for one in found if one.local]
    choices = local or [one for one in found if one.is_safe]
    return choices[-1] if choices else None


def _after(event: Event, one: Checkpoint) -> Checkpoint:
    facts = event.facts
    match event.kind:
        case "saved":
            return replace(
                one,
                at=event.at,
                seconds=facts.get("seconds"),
                bytes=facts.get("bytes"),
                path=facts.get("path"),
                local=True,
            )
        case "start":  # what a framework saved tells of itself only when it is resumed from
            return replace(one, path=one.path or facts.get("resume_path"), local=True)
        case "pruned":
            return replace(one, local=False)
        case "uploaded":
            size = one.bytes if one.bytes is not None else facts.get("bytes")
            place = facts.get("place", "")
            return replace(one, bytes=size, place=place, placed_at=event.at, trouble=None)
        case "upload_failed":
            return replace(one, trouble=facts.get("error", ""))
        case "restored":
            return replace(one, local=True, place=one.place or facts.get("place"))
        case _:
            return one
