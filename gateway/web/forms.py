"""The forms that people post. A form knows shape: lengths, what must be there, which choices were
on offer. Whether a person may is asked of `core.policy`, as for the API."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from flask_wtf import FlaskForm
from werkzeug.datastructures import MultiDict
from wtforms import BooleanField, Field, HiddenField, PasswordField, StringField
from wtforms.validators import EqualTo, InputRequired, Length, ValidationError

from gateway.core.access import Role
from gateway.core.ask import Ask
from gateway.core.manifest import Field as Question
from gateway.core.manifest import FieldKind, GpuRule, Manifest
from gateway.web.messages import Shown
from gateway.web.texts import Lazy
from gateway.web.texts import lazy_gettext as _l

VALUE = "v-"  # before the names of a template's own fields, which may be any word
CHOSEN_GPUS = "gpus_per_node"
OWN_PATH = "environment_path"

ROLES = {
    Role.RESEARCHER: _l("Researcher"),
    Role.OPERATOR: _l("Operator"),
    Role.ADMINISTRATOR: _l("Administrator"),
}
_LONGEST_LINE = 4096


def _text(text: Lazy) -> str:
    """WTForms only shows or formats it, in the reader's request; its stubs want a plain text."""
    return cast(str, text)


def _needed() -> InputRequired:
    return InputRequired(_text(_l("Fill this in.")))


def _at_most(longest: int) -> Length:
    return Length(max=longest, message=_text(_l("At most %(max)s characters.")))


class Choice(StringField):
    """One of pairs of value and label. Unlike WTForms' SelectField it keeps what was sent as it
    is, and its fault is a text that we translate. With `judged` another looks whether it may be.
    """

    def __init__(
        self,
        label: str | None = None,
        validators: Sequence[Any] = (),
        *,
        choices: Sequence[tuple[str, str]] = (),
        judged: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(label, list(validators), **options)
        self.choices, self.judged = list(choices), judged

    def pre_validate(self, form: object) -> None:  # noqa: ARG002  # WTForms calls it so
        if not self.judged and self.data not in [value for value, _ in self.choices]:
            raise ValidationError(str(_l("Choose one of the list.")))


class Posted(FlaskForm):  # type: ignore[misc]  # the package has no types
    """A form of ours: its faults as the pages show them."""

    def problems(self) -> dict[str, Shown]:
        """The first fault of each field."""
        return {
            name: Shown(name, "shape", str(found[0]), None)
            for name, found in self.errors.items()
            if name and found
        }


class Confirmed(Posted):
    """A button and nothing else: that the page was ours is what is asked."""


class SignInForm(Posted):
    login = StringField(_text(_l("User name")), [_needed(), _at_most(200)])
    password = PasswordField(_text(_l("Password")), [_needed(), _at_most(1000)])
    next = HiddenField()
    kept = HiddenField()


class SettingsForm(Posted):
    """What is left empty follows the browser and the site."""

    language = Choice(_text(_l("Language")))
    timezone = Choice(_text(_l("Time zone")))

    def offer(self, *, languages: Mapping[str, str], zones: list[str], site_zone: str) -> None:
        browser, site = _l("As the browser asks"), _l("As the cluster: %(zone)s")
        self.language.choices = [("", str(browser)), *languages.items()]
        self.timezone.choices = [("", site % {"zone": site_zone}), *((z, z) for z in zones)]


class PasswordForm(Posted):
    old = PasswordField(_text(_l("Password now")), [_needed(), _at_most(1000)])
    new = PasswordField(_text(_l("New password")), [_needed(), _at_most(1000)])
    again = PasswordField(
        _text(_l("New password again")),
        [_needed(), EqualTo("new", _text(_l("The two are not the same.")))],
    )
    elsewhere = BooleanField(_text(_l("End my other sessions and API tokens")))


class TimeLimitForm(Posted):
    """How it reads is judged by `core.durations`, as everywhere."""

    time_limit = StringField(_text(_l("New time limit")), [_needed(), _at_most(40)])


class RoleForm(Posted):
    role = Choice(_text(_l("Role")), choices=[(one.value, _text(ROLES[one])) for one in Role])


class PersonForm(RoleForm):
    """A new account. What a login may be is judged by `services.people`."""

    login = StringField(_text(_l("User name")), [_needed(), _at_most(64)])
    unix_user = StringField(_text(_l("Unix account")), [_needed(), _at_most(32)])
    display_name = StringField(_text(_l("Name")), [_needed(), _at_most(100)])
    password = PasswordField(_text(_l("First password")), [_needed(), _at_most(1000)])


class SubmitForm(Posted):
    """The fixed fields of the submit form; `submit_form` adds those of a template."""

    form_key = HiddenField(
        validators=[
            InputRequired(_text(_l("The form had lost its number. Send it again."))),
            _at_most(64),
        ]
    )
    template = StringField(_text(_l("Template")), [_needed(), _at_most(64)])
    group = Choice(_text(_l("Group")), [_needed()], judged=True)
    partition = Choice(_text(_l("Partition")), [_needed()], judged=True)
    qos = Choice(_text(_l("QoS")), [_needed()], judged=True)
    gpu_type = Choice(_text(_l("GPU type")), judged=True)
    nodes = StringField(_text(_l("Nodes")), [_needed(), _at_most(20)])
    nproc_per_node = StringField(_text(_l("Processes on each node")), [_needed(), _at_most(20)])
    time_limit = StringField(_text(_l("Time limit")), [_needed(), _at_most(40)])
    name = StringField(_text(_l("Job name")), [_needed(), _at_most(1000)])
    working_directory = StringField(
        _text(_l("Working folder")), [_needed(), _at_most(_LONGEST_LINE)]
    )
    environment = Choice(_text(_l("Environment")), judged=True)

    def ask(self) -> Ask:
        """Exactly what was sent: a submit is judged on this, never on what we would prefer."""
        fixed = {name: str(self[name].data or "") for name in ASK_FIELDS}
        return Ask(values=self.values(), **fixed)

    def values(self) -> dict[str, str]:
        """The template's own fields that were sent, as typed."""
        return {
            name.removeprefix(VALUE): _typed(field)
            for name, field in self._fields.items()
            if name.startswith(VALUE) and field.raw_data
        }

    def problems(self) -> dict[str, Shown]:
        """At the names that `core.policy` uses: a template's field without its prefix."""
        found = super().problems().values()
        return {
            _bare(one.field): Shown(_bare(one.field), one.code, one.text, None) for one in found
        }


ASK_FIELDS = (
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


def submit_form(manifest: Manifest, sent: MultiDict[str, str]) -> SubmitForm:
    """The form with this template's fields, holding what was sent. CSRF is the app's guard."""
    return _with_fields(manifest)(formdata=sent, meta={"csrf": False})


@lru_cache(maxsize=64)
def _with_fields(manifest: Manifest) -> type[SubmitForm]:
    own: dict[str, Any] = {
        f"{VALUE}{question.name}": _control(question)
        for question in manifest.fields
        if question.kind is not FieldKind.ENVIRONMENT
    }
    if manifest.resources.gpus is GpuRule.CHOSEN:
        own[f"{VALUE}{CHOSEN_GPUS}"] = StringField(validators=[_at_most(20)])
    own[f"{VALUE}{OWN_PATH}"] = StringField(validators=[_at_most(_LONGEST_LINE)])
    return type("TemplateForm", (SubmitForm,), own)


def _control(question: Question) -> object:
    if question.kind is FieldKind.BOOL:
        return BooleanField()
    needed = [_needed()] if question.required else []
    if question.kind is FieldKind.CHOICE:
        choices = [(one.value, one.value) for one in question.choices]
        return Choice(validators=needed, choices=choices, judged=True)
    return StringField(validators=[*needed, _at_most(_LONGEST_LINE)])


def _typed(field: Field) -> str:
    if isinstance(field, BooleanField):
        return "true" if field.data else ""
    return str(field.data or "")


def _bare(name: str) -> str:
    return name.removeprefix(VALUE)
