"""manifest.toml, read strictly: an unknown word is a fault, and every fault names its line."""

import dataclasses
import re
import tomllib
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from gateway.core.answers import BadValue, clean
from gateway.core.env_facts import Need, read_need
from gateway.core.manifest import (
    RESERVED,
    Activity,
    App,
    ArrayRule,
    Choice,
    Field,
    FieldKind,
    GpuRule,
    Listen,
    Manifest,
    Range,
    Resources,
    SbatchOptions,
    Section,
)
from gateway.core.manifest_reader import Fault, Reader
from gateway.errors import GatewayError

_FIELD_NAME = re.compile(r"[a-z][a-z0-9_]{0,30}")
_TEMPLATE_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,30}")
_BELOW_BASE = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.=?&/-]{0,199}")
PLACEHOLDER = re.compile(r"\{(socket|port|base|folder)\}")
_SIGNAL = re.compile(r"B:(?:USR1|USR2|TERM)@[1-9][0-9]{0,4}")


class BadManifest(GatewayError):
    """The manifest cannot be used; every fault is listed."""

    code = "bad_manifest"

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        super().__init__("; ".join(fault.text for fault in faults))
        self.faults = faults


def parse_manifest(
    text: str, field_sets: Mapping[str, tuple[Field, ...]] = MappingProxyType({})
) -> Manifest:
    """Read a manifest; raises BadManifest with every fault and its line where one is known.

    `field_sets` are what it may add to its own fields, by name.
    """
    reader = Reader(text)
    manifest = _manifest(reader, _document(text), field_sets)
    if reader.faults:
        raise BadManifest(tuple(reader.faults))
    return manifest


def parse_field_set(text: str) -> tuple[Field, ...]:
    """Fields that several templates share; raises BadManifest."""
    reader, document = Reader(text), _document(text)
    reader.known(document, "", {"fields"})
    fields = _fields(reader, document)
    if reader.faults:
        raise BadManifest(tuple(reader.faults))
    return fields


def _document(text: str) -> Mapping[str, object]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"at line (\d+)", str(error))
        line = int(place[1]) if place else None
        raise BadManifest((Fault(line, "manifest_syntax", str(error)),)) from error


_KEYS = {
    "name",
    "order",
    "title",
    "summary",
    "field_sets",
    "resources",
    "sbatch",
    "fields",
    "app",
    "needs",
    "internal",
}


def _manifest(
    read: Reader,
    document: Mapping[str, object],
    field_sets: Mapping[str, tuple[Field, ...]],
) -> Manifest:
    read.known(document, "", _KEYS)
    fields = (*_fields(read, document), *_shared(read, document, field_sets))
    names = [field.name for field in fields]
    for name in sorted({name for name in names if names.count(name) > 1 or name in RESERVED}):
        read.fault("field_name_taken", f"field name {name!r} is taken", key="name", value=name)
    manifest = Manifest(
        name=read.text(document, "name", pattern=_TEMPLATE_NAME),
        title=read.both(document, "title"),
        summary=read.both(document, "summary"),
        resources=_resources(read, read.table(document, "resources"), fields),
        sbatch=_sbatch(read, read.table(document, "sbatch")),
        fields=fields,
        order=read.integer(document, "order", None),
        app=_app(read, read.table(document, "app")) if "app" in document else None,
        needs=tuple(_needs(read, document)),
        internal=read.flag(document, "internal", default=False),
    )
    if manifest.app:
        _check_app(read, manifest)
    return manifest


def _fields(read: Reader, document: Mapping[str, object]) -> tuple[Field, ...]:
    return tuple(
        _field(read, table, number)
        for number, table in enumerate(read.tables(document, "fields"), start=1)
    )


def _shared(
    read: Reader,
    document: Mapping[str, object],
    field_sets: Mapping[str, tuple[Field, ...]],
) -> Iterator[Field]:
    for name in read.words(document, "field_sets"):
        if name in field_sets:
            yield from field_sets[name]
        else:
            text = f"no such field set: {name!r}, looked for in _shared/{name}.toml"
            read.fault("field_set_missing", text, key="field_sets")


def _resources(read: Reader, table: Mapping[str, object], fields: tuple[Field, ...]) -> Resources:
    read.known(table, "resources", {one.name for one in dataclasses.fields(Resources)})
    return Resources(
        nodes=read.range(table, "nodes", lowest=1),
        nproc_per_node=read.range(table, "nproc_per_node", lowest=1),
        gpus=read.one_of(table, "gpus", GpuRule),
        gpus_per_node=read.range(table, "gpus_per_node", lowest=0),
        cpus_per_process=read.integer(table, "cpus_per_process", 1) or 1,
        array=_array(read, table["array"], fields) if "array" in table else None,
        memory_mb=_memory(read, table),
    )


def _memory(read: Reader, table: Mapping[str, object]) -> int | None:
    found = read.integer(table, "memory_mb", None)
    if found is not None and found < 1:
        read.fault("manifest_value", "memory_mb must be 1 or more", key="memory_mb")
    return found


def _array(read: Reader, value: object, fields: tuple[Field, ...]) -> ArrayRule | None:
    """{ rows, at_once }, or the name of `rows` alone."""
    table = {"rows": value} if isinstance(value, str) else value
    if not isinstance(table, dict) or not {"rows"} <= table.keys() <= {"rows", "at_once"}:
        read.fault("manifest_array", "array needs rows, and may have at_once", key="array")
        return None
    own = {field.name: field for field in fields}
    for key, kind in (("rows", FieldKind.TABLE), ("at_once", FieldKind.INTEGER)):
        found = own.get(str(table.get(key)))
        if found and key == "rows" and not found.required:
            read.fault("manifest_array", f"array: {found.name} must be required", key="array")
        if key in table and (found is None or found.kind is not kind):
            text = f"array: {key} must name a field of kind {kind}"
            read.fault("manifest_array", text, key="array")
    return ArrayRule(str(table["rows"]), str(table["at_once"]) if "at_once" in table else None)


def _needs(read: Reader, document: Mapping[str, object]) -> Iterator[Need]:
    for word in read.words(document, "needs"):
        need = read_need(word)
        if need is None:
            read.fault("manifest_value", f"needs: {word!r} is no name>=version", key="needs")
        else:
            yield need


def _sbatch(read: Reader, table: Mapping[str, object]) -> SbatchOptions:
    read.known(table, "sbatch", {"requeue", "append_output", "signal"})
    signal = read.text(table, "signal", pattern=_SIGNAL, default="") or None
    return SbatchOptions(
        requeue=read.flag(table, "requeue", default=True),
        append_output=read.flag(table, "append_output", default=True),
        signal=signal,
    )


def _app(read: Reader, table: Mapping[str, object]) -> App:
    read.known(table, "app", {"start", "listen", "ready", "activity", "isolate"})
    app = App(
        start=tuple(read.words(table, "start")),
        listen=read.one_of(table, "listen", Listen),
        ready=read.text(table, "ready", pattern=_BELOW_BASE, default=""),
        activity=read.one_of(table, "activity", Activity, default=Activity.CONNECTIONS),
        isolate=read.flag(table, "isolate", default=False),
    )
    placeholders = set(PLACEHOLDER.findall(" ".join(app.start)))
    other = Listen.PORT if app.listen is Listen.SOCKET else Listen.SOCKET
    if not app.start or app.listen not in placeholders or other in placeholders:
        text = f"start must hold {{{app.listen}}}, and not {{{other}}}"
        read.fault("manifest_app", text, key="start")
    if app.isolate and app.listen is Listen.SOCKET:
        text = "what listens at a socket needs no network of its own: isolate is for a port"
        read.fault("manifest_app", text, key="isolate")
    return app


def _check_app(read: Reader, manifest: Manifest) -> None:
    """There is one door, on one node, and what a person did in the program is not there again."""
    if manifest.resources.nodes != Range(1, 1, 1) or manifest.resources.array:
        read.fault("manifest_app", "an application has one node and no array", key="nodes")
    if manifest.sbatch.requeue:
        read.fault("manifest_app", "an application needs requeue = false", key="requeue")


_FIELD_KEYS = {
    "name",
    "kind",
    "label",
    "help",
    "default",
    "required",
    "min",
    "max",
    "choices",
    "pattern",
    "placeholder",
    "section",
}


def _field(read: Reader, table: Mapping[str, object], number: int) -> Field:
    read.table_number = number
    read.known(table, "fields", _FIELD_KEYS)
    kind = read.one_of(table, "kind", FieldKind)
    choices = tuple(_choice(read, entry) for entry in read.tables(table, "choices"))
    if (kind is FieldKind.CHOICE) != bool(choices):
        read.fault("field_choices", "a choice field, and no other, lists its choices", key="kind")
    pattern = read.text(table, "pattern", default="") or None
    if pattern is not None:
        read.regular_expression(pattern)
    field = Field(
        name=read.text(table, "name", pattern=_FIELD_NAME),
        kind=kind,
        label=read.both(table, "label"),
        help=read.both(table, "help"),
        default=read.scalar(table, "default"),
        required=read.flag(table, "required", default=False),
        min=read.integer(table, "min", None),
        max=read.integer(table, "max", None),
        choices=choices,
        pattern=pattern,
        placeholder=read.text(table, "placeholder", default=""),
        section=read.one_of(table, "section", Section, default=Section.MAIN),
    )
    _check_default(read, field)
    read.table_number = 0
    return field


def _check_default(read: Reader, field: Field) -> None:
    if not field.default:
        return
    try:
        clean(field, field.default)
    except BadValue as bad:
        read.fault("manifest_default", f"the default is refused: {bad.code}", key="default")


def _choice(read: Reader, table: Mapping[str, object]) -> Choice:
    read.known(table, "choices", {"value", "label"})
    return Choice(read.text(table, "value"), read.both(table, "label"))
