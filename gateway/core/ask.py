"""What a person filled in: the form's values before anybody has judged them."""

import dataclasses
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ask:
    """Raw texts as typed, so that the form can be shown, saved and loaded again unchanged.

    `values` are the template's own fields. `gpu_type` empty: any the partition has.
    `environment` is a name of the site's list.
    """

    template: str
    group: str
    partition: str
    qos: str
    nodes: str
    nproc_per_node: str
    time_limit: str
    name: str
    working_directory: str
    environment: str = "none"
    gpu_type: str = ""
    values: dict[str, str] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """A message at a field: `code` is a message key, `facts` fill its sentence, `nearest`
    is the nearest value that works, where there is one."""

    field: str
    code: str
    facts: dict[str, str | int] = dataclasses.field(default_factory=dict)
    nearest: str | None = None
