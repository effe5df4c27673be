"""Does the job that Slurm accepted equal the job that was asked for?"""

from dataclasses import dataclass, fields, replace


@dataclass(frozen=True, slots=True)
class Shape:
    """What a person sees and pays for. `time_limit_minutes` None: no limit. `tasks` of an array;
    None: there is none, or nobody counted them."""

    account: str
    qos: str
    partition: str
    nodes: int
    gpus: int
    time_limit_minutes: int | None
    tasks: int | None = None


def differences(asked: Shape, accepted: Shape) -> tuple[str, ...]:
    """Names of the fields in which the accepted job is another one; empty when it is the same.

    Site plugins, QoS and partition rules may all change a job after the page showed it.
    """
    if accepted.tasks is None:
        asked = replace(asked, tasks=None)
    return tuple(
        field.name
        for field in fields(Shape)
        if getattr(asked, field.name) != getattr(accepted, field.name)
    )
