"""The submit form as it is shown: choices from the offer, values as typed, messages at fields."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from uuid import uuid4

from flask import render_template
from werkzeug.datastructures import MultiDict

from gateway.core.ask import Ask, FieldProblem
from gateway.core.manifest import FieldKind, GpuRule, Manifest
from gateway.core.offer import Offer
from gateway.core.policy import Reading
from gateway.services import offer as offers
from gateway.services import preview as previews
from gateway.web.access import viewer
from gateway.web.deps import deps
from gateway.web.i18n import language
from gateway.web.messages import Shown, shown
from gateway.web.show import minutes_words
from gateway.web.texts import gettext
from gateway.web.views import choices, earlier

VALUE = "v-"  # before the names of a template's own fields, which may be any word
_ASK_FIELDS = (
    "template",
    "group",
    "partition",
    "qos",
    "nodes",
    "nproc_per_node",
    "time_limit",
    "name",
    "working_directory",
    "environment",
    "gpu_type",
)
# While somebody types, an empty field is not yet a mistake.
_UNFINISHED = frozenset({"required", "field_required", "time_limit_empty"})
_NOTED = (*_ASK_FIELDS[2:], "gpus_per_node")


@dataclass(frozen=True, slots=True)
class FieldView:
    """One of a template's own fields."""

    name: str
    input: str
    kind: str
    label: str
    help: str
    value: str
    required: bool
    placeholder: str
    options: list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class FormView:
    """All that the templates of the form need."""

    key: str
    ask: Ask
    notice: str
    complete: bool
    live: bool
    nothing_allowed: bool
    source: int | None
    earlier: list[tuple[int, str]]
    templates: list[choices.TemplateCard]
    fields: list[FieldView]
    environments: list[tuple[str, str]]
    offered: choices.Offered
    numbers: list[choices.NumberView]
    hints: dict[str, str]
    helps: dict[str, str]
    readings: dict[str, str]
    problems: dict[str, Shown]
    general: list[Shown]
    beside: choices.Beside
    noted: tuple[str, ...]


def page(
    form: Mapping[str, str],
    *,
    notice: str = "",
    problems: tuple[FieldProblem, ...] | None = None,
    source: int | None = None,
    estimate: object = None,
) -> str:
    """The whole page. `problems` are those of a refused submit; without, unfinished is fine."""
    shown_form = view(form, notice=notice, problems=problems, source=source)
    return render_template("pages/submit.html", form=shown_form, estimate=estimate)


def view(
    form: Mapping[str, str],
    *,
    notice: str = "",
    problems: tuple[FieldProblem, ...] | None = None,
    source: int | None = None,
    live: bool = False,
) -> FormView:
    """`live`: while somebody types; `problems`: what a submit was refused for."""
    have, offer = deps(), offers.offer(viewer(), begin=deps().read)
    ask = read(form, offer)
    manifest = _manifest(ask)
    seen = _preview(ask)
    fields, offered = _fields(manifest, ask), choices.offered(offer, ask)
    numbers = choices.numbers(manifest, ask, seen.reading, offered.partition)
    at_fields = _at_fields(_finished(seen.problems) if problems is None else problems)
    named = {*_ASK_FIELDS, "gpus_per_node", *(one.name for one in fields)}
    return FormView(
        key=form.get("form_key") or str(uuid4()),
        ask=ask,
        notice=notice,
        complete=problems is not None,
        live=live,
        nothing_allowed=not offer.groups,
        source=source,
        earlier=[] if live else earlier.choices(),
        templates=choices.templates(have.catalogue.all()),
        fields=fields,
        environments=choices.environments(have.environments),
        offered=offered,
        numbers=numbers,
        hints=offered.hints | {number.name: number.hint for number in numbers},
        helps=_helps(fields),
        readings=_readings(seen.reading),
        problems=at_fields,
        general=[one for name, one in at_fields.items() if name not in named],
        beside=choices.beside(seen, offered.partition),
        noted=(*_NOTED, *(one.name for one in fields)),
    )


def read(form: Mapping[str, str], offer: Offer) -> Ask:
    """What the form says, with a default for each field it does not have."""
    asked = {name: form.get(name, "") for name in _ASK_FIELDS}
    asked |= _suggested(form)
    values = {name.removeprefix(VALUE): form[name] for name in form if name.startswith(VALUE)}
    values |= {n: v for n, v in _suggested(form).items() if n not in _ASK_FIELDS}
    ask = Ask(values=values, **{n: asked[n] for n in _ASK_FIELDS})
    ask = _with_template(ask, shown_before=form.get("shown_template", ""))
    return choices.with_defaults(ask, offer)


def as_typed(form: Mapping[str, str]) -> Ask:
    """Exactly what was sent: a submit is judged on this, never on what we would prefer."""
    values = {name.removeprefix(VALUE): form[name] for name in form if name.startswith(VALUE)}
    return Ask(values=values, **{name: form.get(name, "") for name in _ASK_FIELDS})


def from_ask(ask: Ask) -> MultiDict[str, str]:
    """The form's fields for an ask, to load an earlier one again."""
    pairs = [(name, str(getattr(ask, name))) for name in _ASK_FIELDS]
    pairs += [(f"{VALUE}{name}", value) for name, value in ask.values.items()]
    return MultiDict([*pairs, ("shown_template", ask.template)])


def _suggested(form: Mapping[str, str]) -> dict[str, str]:
    """A pressed suggestion: field=value."""
    name, equals, value = form.get("try", "").partition("=")
    return {name: value} if equals else {}


def _with_template(ask: Ask, *, shown_before: str) -> Ask:
    """A changed template brings its own defaults; what fits it as well stays."""
    catalogue = deps().catalogue.all()
    names = [template.name for template in catalogue]
    if ask.template not in names and names:
        ask = replace(ask, template=names[0])
    manifest = _manifest(ask)
    own = manifest.resources
    if shown_before != ask.template:
        ask = replace(
            ask,
            nodes=ask.nodes or str(own.nodes.default),
            nproc_per_node=ask.nproc_per_node or str(own.nproc_per_node.default),
        )
    if shown_before == ask.template or not names:
        return ask
    values = {own.name: ask.values.get(own.name, own.default) for own in manifest.fields}
    if manifest.resources.gpus is GpuRule.CHOSEN:
        chosen = manifest.resources.gpus_per_node
        values["gpus_per_node"] = ask.values.get("gpus_per_node", str(chosen.default))
    auto_name = not ask.name or ask.name in names
    return replace(ask, values=values, name=ask.template if auto_name else ask.name)


def _preview(ask: Ask) -> previews.Preview:
    have = deps()
    return previews.preview(
        ask,
        viewer=viewer(),
        begin=have.read,
        catalogue=have.catalogue,
        environments=have.environments,
    )


def _at_fields(told: tuple[FieldProblem, ...]) -> dict[str, Shown]:
    """The first problem of each field: the others may be gone once it is mended."""
    return {problem.field: shown(problem) for problem in reversed(told)}


def _manifest(ask: Ask) -> Manifest:
    template = deps().catalogue.get(ask.template)
    return template.manifest if template is not None else choices.NO_MANIFEST


def _fields(manifest: Manifest, ask: Ask) -> list[FieldView]:
    where = language()
    return [
        FieldView(
            name=own.name,
            input=f"{VALUE}{own.name}",
            kind=own.kind.value,
            label=own.label.get(where),
            help=own.help.get(where),
            value=ask.values.get(own.name, "" if own.kind is FieldKind.BOOL else own.default),
            required=own.required,
            placeholder=own.placeholder,
            options=[(choice.value, choice.label.get(where)) for choice in own.choices],
        )
        for own in manifest.fields
        if own.kind is not FieldKind.ENVIRONMENT
    ]


def _helps(fields: list[FieldView]) -> dict[str, str]:
    return {
        **{one.name: one.help for one in fields},
        "working_directory": gettext(
            "Where the job runs and writes its output; the folder must exist."
        ),
        "name": gettext("As it will stand in the queue."),
    }


def _readings(reading: Reading) -> dict[str, str]:
    minutes = reading.time_limit_minutes
    return {} if minutes is None else {"time_limit": minutes_words(minutes)}


def _finished(problems: tuple[FieldProblem, ...]) -> tuple[FieldProblem, ...]:
    return tuple(problem for problem in problems if problem.code not in _UNFINISHED)
