"""What a template asks for and offers."""

from dataclasses import dataclass
from enum import StrEnum

from gateway.core.env_facts import Need

# What every script has besides its own fields, and words of the template language.
CONTEXT = frozenset(
    {
        "nodes",
        "nproc_per_node",
        "gpus_per_node",
        "cpus_per_task",
        "setup",
        "lead",
        "on_stall",
        "on_preempt",
        "smoke",
        "kit",
        "app_options",
        "app_start",
        "manifests",
        "node_local",
        "snapshot_area",
        "base",
    }
)
RESERVED = CONTEXT | {
    "true",
    "false",
    "none",
    "and",
    "or",
    "not",
    "if",
    "else",
    "in",
    "is",
    "loop",
    "self",
}


@dataclass(frozen=True, slots=True)
class Text:
    """A text of the template's author in both languages. Never HTML."""

    en: str
    zh_Hans: str  # as Babel names the locale

    def get(self, locale: str) -> str:
        return self.zh_Hans if locale.startswith("zh") else self.en


class FieldKind(StrEnum):
    PATH = "path"  # a file: relative to the working folder, or absolute
    PATHS = "paths"  # absolute folders, spaces between them
    DATASETS = "datasets"  # names of the catalogue (name, name@2) or such folders
    TABLE = "table"  # a line of names, then a row of values a line; see core.tables
    ARGUMENTS = "arguments"  # words for a program, split like a shell does, with no other meaning
    COMMAND = "command"  # the same, and the first word is the program
    INTEGER = "integer"
    HOURS = "hours"  # typed as hours, 2 or 0.5; the script gets whole seconds
    CHOICE = "choice"
    TEXT = "text"  # letters, digits and . _ - + : / @ , = % and spaces, or the field's own pattern
    BOOL = "bool"
    ENVIRONMENT = "environment"  # the name of one of the site's environments


class GpuRule(StrEnum):
    PER_PROCESS = "per_process"  # gpus_per_node is nproc_per_node
    CHOSEN = "chosen"  # a field of its own, with a range
    NONE = "none"


class Section(StrEnum):
    """Where in the form a field stands."""

    MAIN = "main"
    MORE = "more"  # folded away: most people leave these as they are


@dataclass(frozen=True, slots=True)
class Range:
    min: int
    max: int
    default: int

    @property
    def is_fixed(self) -> bool:
        return self.min == self.max


@dataclass(frozen=True, slots=True)
class ArrayRule:
    """A job array: one task a row of the field `rows`; `at_once` names the field that says how
    many may run at a time."""

    rows: str
    at_once: str | None = None

    @property
    def fields(self) -> frozenset[str]:
        return frozenset({self.rows, self.at_once or self.rows})


@dataclass(frozen=True, slots=True)
class Resources:
    """Which numbers the form offers; a fixed range is not shown."""

    nodes: Range
    nproc_per_node: Range
    gpus: GpuRule
    gpus_per_node: Range
    cpus_per_process: int
    array: ArrayRule | None = None
    memory_mb: int | None = None  # of each node, in MiB; None: the partition's default

    def gpus_for(self, nproc_per_node: int, chosen: int) -> int:
        """GPUs of each node; `chosen` counts only where the person may choose."""
        if self.gpus is GpuRule.PER_PROCESS:
            return nproc_per_node
        return chosen if self.gpus is GpuRule.CHOSEN else 0

    def cpus_for(self, nproc_per_node: int) -> int:
        """CPUs of the one task on each node, for all its processes."""
        return self.cpus_per_process * nproc_per_node


@dataclass(frozen=True, slots=True)
class SbatchOptions:
    requeue: bool = True
    append_output: bool = True
    signal: str | None = None


class Listen(StrEnum):
    """Where an application listens, and so which word its `start` must hold."""

    SOCKET = "socket"  # a Unix socket that only the person can reach
    PORT = "port"  # a TCP port of 127.0.0.1


class Activity(StrEnum):
    """What tells that an application is being used."""

    JUPYTER = "jupyter"  # its kernels and terminals say when they worked
    CONNECTIONS = "connections"  # bytes over open connections


@dataclass(frozen=True, slots=True)
class App:
    """A program with pages of its own: how it is started on the node, and what it is known by.

    A word of `start` may hold {socket} or {port}, {base} and {folder}. Without {base} the program
    does not know below which path it is seen, and the door takes that path off.
    """

    start: tuple[str, ...]
    listen: Listen
    ready: str  # a path below the base that answers under 500 once it can be used
    activity: Activity
    isolate: bool = False  # a network of its own: it has no password, and no other way in


@dataclass(frozen=True, slots=True)
class Choice:
    value: str
    label: Text


@dataclass(frozen=True, slots=True)
class Field:
    """One question of the form, and one variable of the script."""

    name: str
    kind: FieldKind
    label: Text
    help: Text
    default: str = ""
    required: bool = False
    min: int | None = None
    max: int | None = None
    choices: tuple[Choice, ...] = ()
    pattern: str | None = None
    placeholder: str = ""
    section: Section = Section.MAIN


@dataclass(frozen=True, slots=True)
class Manifest:
    name: str
    title: Text
    summary: Text
    resources: Resources
    sbatch: SbatchOptions
    fields: tuple[Field, ...]
    order: int | None = None  # its place in the list; those without one come last
    app: App | None = None  # None: a job without pages of its own
    needs: tuple[Need, ...] = ()  # of the environment
    internal: bool = False  # the portal's own: no form offers it

    def field(self, name: str) -> Field:
        return next(field for field in self.fields if field.name == name)
