"""The submit form as it is shown: choices from the offer, values as typed, messages at fields."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl
from uuid import uuid4

from flask import render_template
from werkzeug.datastructures import MultiDict

from gateway.core.ask import Ask, FieldProblem
from gateway.core.manifest import FieldKind, GpuRule, Manifest, Section
from gateway.core.offer import Offer
from gateway.core.policy import Reading
from gateway.services import offer as offers
from gateway.services import preview as previews
from gateway.services.draft import OWN_ENVIRONMENT
from gateway.web import offering
from gateway.web.access import viewer
from gateway.web.deps import deps
from gateway.web.forms import ASK_FIELDS, CHOSEN_GPUS, OWN_PATH, VALUE, SubmitForm, submit_form
from gateway.web.i18n import language
from gateway.web.messages import Shown, shown
from gateway.web.show import minutes_words
from gateway.web.texts import gettext
from gateway.web.views import (
    choices,
    datasetpick,
    earlier,
    environmentwarn,
    formwarn,
    planfill,
    quotebox,
    smokebox,
    spotbox,
    startbox,
    volumepick,
)

# While somebody types, an empty field is not yet a mistake.
_UNFINISHED = frozenset({"required", "field_required", "time_limit_empty"})
# Where a note can stand, by the name of its input and by that of the rules.
_NOTED = (
    *((name, name) for name in ASK_FIELDS[1:]),
    *((f"{VALUE}{name}", name) for name in (CHOSEN_GPUS, OWN_PATH)),
)


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
    default: str
    section: str

    @property
    def as_given(self) -> bool:
        """Whether nobody has changed it; a number that is left empty is its default."""
        left = not self.value and self.kind in {FieldKind.INTEGER, FieldKind.HOURS}
        return left or self.value == self.default


@dataclass(frozen=True, slots=True)
class FormView:
    """All that the templates of the form need."""

    key: str
    typed: SubmitForm
    ask: Ask
    notice: str
    complete: bool
    live: bool
    nothing_allowed: bool
    source: int | None
    earlier: list[tuple[int, str]]
    templates: list[choices.TemplateCard]
    fields: list[FieldView]
    more: list[FieldView]
    more_open: bool
    environments: list[tuple[str, str]]
    own_environment: bool
    volumes: list[tuple[str, str]]
    offered: choices.Offered
    numbers: list[choices.NumberView]
    hints: dict[str, str]
    helps: dict[str, str]
    readings: dict[str, str]
    problems: dict[str, Shown]
    warnings: Mapping[str, formwarn.Warned]
    general: list[Shown]
    beside: choices.Beside
    quote: quotebox.QuoteView | None
    spot: spotbox.SpotBox | None
    start: startbox.StartView
    plan: str
    recipe: str
    check: str
    fit: planfill.FitView | None
    smoke: smokebox.SmokeView | None
    noted: tuple[tuple[str, str], ...]


def page(
    sent: MultiDict[str, str],
    *,
    notice: str = "",
    problems: tuple[FieldProblem, ...] | None = None,
    source: int | None = None,
    estimate: object = None,
    told: Sequence[str] = (),
) -> str:
    """The whole page. `problems` are those of a refused submit; without, unfinished is fine.
    `told` stands beneath the notice."""
    shown_form = view(sent, notice=notice, problems=problems, source=source)
    return render_template("pages/submit.html", form=shown_form, estimate=estimate, told=told)


def view(
    sent: MultiDict[str, str],
    *,
    notice: str = "",
    problems: tuple[FieldProblem, ...] | None = None,
    source: int | None = None,
    live: bool = False,
) -> FormView:
    """`live`: while somebody types; `problems`: what a submit was refused for."""
    have, offer = deps(), offers.offer(viewer(), begin=deps().read)
    typed = read(sent)
    ask = with_defaults(typed, sent, offer)
    manifest = _manifest(ask)
    seen = _preview(ask, offer)
    fields, offered = _fields(manifest, ask, offer), choices.offered(offer, ask)
    numbers = choices.numbers(manifest, ask, seen.reading, offered.partition)
    more = [one for one in fields if one.section == Section.MORE]
    at_fields = _told(typed, seen.problems, problems)
    noted = (*_NOTED, *((one.input, one.name) for one in fields))
    named = {"template", *(name for _, name in noted)}
    return FormView(
        key=typed.form_key.data or str(uuid4()),
        typed=typed,
        ask=ask,
        notice=notice,
        complete=problems is not None,
        live=live,
        nothing_allowed=not offer.groups,
        source=source,
        earlier=[] if live else earlier.choices(),
        templates=choices.templates(have.catalogue.all()),
        fields=[one for one in fields if one.section == Section.MAIN],
        more=more,
        more_open=any(one.name in at_fields or not one.as_given for one in more),
        environments=choices.environments(offering.environments()),
        own_environment=ask.environment == OWN_ENVIRONMENT,
        volumes=volumepick.folders(ask.group),
        offered=replace(offered, groups=quotebox.with_credit(offered.groups)),
        numbers=numbers,
        hints=offered.hints | {number.name: number.hint for number in numbers},
        helps=_helps(fields),
        readings=_readings(seen.reading, manifest),
        problems=at_fields,
        warnings={
            **formwarn.warnings(seen.reading),
            **environmentwarn.warnings(ask, seen.reading, manifest, offered.partition),
            **volumepick.warnings(ask.group, ask.working_directory),
        },
        general=[one for name, one in at_fields.items() if name not in named],
        beside=choices.beside(seen, offered.partition),
        quote=quotebox.build(seen.reading, offer, template=ask.template),
        spot=spotbox.build(seen.reading, offer, ask, manifest),
        start=startbox.build(ask, seen.reading, seen.problems, offer=offer, manifest=manifest),
        plan=sent.get("plan", ""),
        recipe=sent.get("recipe", ""),
        check=sent.get("check", ""),
        fit=planfill.fit(sent.get("plan", ""), ask, seen.reading, offer),
        smoke=smokebox.view(sent.get("smoke", ""), ask),
        noted=noted,
    )


def read(sent: MultiDict[str, str]) -> SubmitForm:
    """The form with the fields of the template that was sent, a pressed suggestion taken."""
    template = deps().catalogue.get(_template_name(sent))
    manifest = template.manifest if template is not None else choices.NO_MANIFEST
    return submit_form(manifest, datasetpick.merged(_with_suggestion(sent)))


def judged(typed: SubmitForm) -> tuple[FieldProblem, ...]:
    """What the rules say of a form that is not even well-formed: all faults are told at once."""
    return _preview(typed.ask()).problems


def with_defaults(typed: SubmitForm, sent: MultiDict[str, str], offer: Offer) -> Ask:
    """What the form says, with a default for each field it does not have."""
    ask = replace(typed.ask(), template=_template_name(sent))
    ask = _with_template(ask, shown_before=sent.get("shown_template", ""))
    return choices.with_defaults(ask, offer)


def from_ask(ask: Ask) -> MultiDict[str, str]:
    """The form's fields for an ask, to load an earlier one again."""
    pairs = [(name, str(getattr(ask, name))) for name in ASK_FIELDS]
    pairs += [(f"{VALUE}{name}", value) for name, value in ask.values.items()]
    return MultiDict([*pairs, ("shown_template", ask.template)])


def _template_name(sent: MultiDict[str, str]) -> str:
    """The one that was sent; where there is no such one (any more), the site's first."""
    names = [template.name for template in deps().catalogue.all()]
    wanted = sent.get("template", "")
    for name in (wanted, deps().settings.first_template, *names):
        if name in names:
            return name
    return wanted


def _with_suggestion(sent: MultiDict[str, str]) -> MultiDict[str, str]:
    """A pressed suggestion in the place of what was typed: field=value, or for a cheaper shape
    several of them, as an address holds them."""
    name, equals, value = sent.get("try", "").partition("=")
    changes = [(name, value)] if equals else []
    changes += [pair for pair in parse_qsl(sent.get("set", "")) if pair[0] in ASK_FIELDS]
    if not changes:
        return sent
    changed = MultiDict(sent)
    for name, value in changes:
        changed[name if name in ASK_FIELDS else f"{VALUE}{name}"] = value
    return changed


def _with_template(ask: Ask, *, shown_before: str) -> Ask:
    """A changed template brings its own defaults; what fits it as well stays."""
    names = [template.name for template in deps().catalogue.all()]
    if shown_before == ask.template or not names:
        return ask
    manifest = _manifest(ask)
    numbers = manifest.resources
    values = {own.name: ask.values.get(own.name, own.default) for own in manifest.fields}
    values |= {OWN_PATH: ask.values.get(OWN_PATH, "")}
    if numbers.gpus is GpuRule.CHOSEN:
        chosen = numbers.gpus_per_node
        values[CHOSEN_GPUS] = ask.values.get(CHOSEN_GPUS, str(chosen.default))
    return replace(
        ask,
        values=values,
        nodes=ask.nodes or str(numbers.nodes.default),
        nproc_per_node=ask.nproc_per_node or str(numbers.nproc_per_node.default),
        name=ask.template if not ask.name or ask.name in names else ask.name,
    )


def _preview(ask: Ask, offer: Offer | None = None) -> previews.Preview:
    have = deps()
    return previews.preview(
        ask,
        viewer=viewer(),
        begin=have.read,
        catalogue=have.catalogue,
        environments=offering.environments(),
        offer=offer,
    )


def _told(
    typed: SubmitForm,
    seen: tuple[FieldProblem, ...],
    refused: tuple[FieldProblem, ...] | None,
) -> dict[str, Shown]:
    """While somebody types, what is there but wrong; of a refused submit everything."""
    if refused is None:
        return _at_fields(_finished(seen))
    typed.validate()
    return typed.problems() | _at_fields(refused)  # what the rules say at a field says more


def _at_fields(told: tuple[FieldProblem, ...]) -> dict[str, Shown]:
    """The first problem of each field: the others may be gone once it is mended."""
    return {problem.field: shown(problem) for problem in reversed(told)}


def _manifest(ask: Ask) -> Manifest:
    template = deps().catalogue.get(ask.template)
    return template.manifest if template is not None else choices.NO_MANIFEST


def _fields(manifest: Manifest, ask: Ask, offer: Offer) -> list[FieldView]:
    where, sets = language(), datasetpick.options(offer.datasets)
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
            options=sets
            if own.kind is FieldKind.DATASETS
            else [(choice.value, choice.label.get(where)) for choice in own.choices],
            default=own.default,
            section=own.section.value,
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
        OWN_PATH: gettext("The folder with bin/activate, as a whole path."),
    }


def _readings(reading: Reading, manifest: Manifest) -> dict[str, str]:
    minutes, array = reading.time_limit_minutes, manifest.resources.array
    found = {} if minutes is None else {"time_limit": minutes_words(minutes)}
    return found | ({array.rows: choices.array_words(reading)} if array else {})


def _finished(problems: tuple[FieldProblem, ...]) -> tuple[FieldProblem, ...]:
    return tuple(problem for problem in problems if problem.code not in _UNFINISHED)
