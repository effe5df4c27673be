"""The forms that people post. A form knows shape: lengths, what must be there, which choices were
on offer. Whether a person may is asked of `core.policy`, as for the API."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from werkzeug.datastructures import MultiDict
from wtforms import (
    BooleanField,
    Field,
    HiddenField,
    PasswordField,
    StringField,
    TextAreaField,
)
from wtforms.validators import EqualTo, InputRequired

from gateway.core.access import Role
from gateway.core.answers import LONGEST_LINE, LONGEST_TABLE
from gateway.core.ask import Ask
from gateway.core.manifest import Field as Question
from gateway.core.manifest import FieldKind, GpuRule, Manifest
from gateway.web.formbase import Choice, Posted, at_most, needed, said
from gateway.web.messages import Shown
from gateway.web.texts import lazy_gettext as _l

VALUE = "v-"  # before the names of a template's own fields, which may be any word
CHOSEN_GPUS = "gpus_per_node"
OWN_PATH = "environment_path"

ROLES = {
    Role.RESEARCHER: _l("Researcher"),
    Role.OPERATOR: _l("Operator"),
    Role.ADMINISTRATOR: _l("Administrator"),
}


class Confirmed(Posted):
    """A button and nothing else: that the page was ours is what is asked."""


class SignInForm(Posted):
    login = StringField(said(_l("User name")), [needed(), at_most(200)])
    password = PasswordField(said(_l("Password")), [needed(), at_most(1000)])
    next = HiddenField()
    kept = HiddenField()


class SettingsForm(Posted):
    """What is left empty follows the browser and the site."""

    language = Choice(said(_l("Language")))
    timezone = Choice(said(_l("Time zone")))

    def offer(self, *, languages: Mapping[str, str], zones: list[str], site_zone: str) -> None:
        browser, site = _l("As the browser asks"), _l("As the cluster: %(zone)s")
        self.language.choices = [("", str(browser)), *languages.items()]
        self.timezone.choices = [("", site % {"zone": site_zone}), *((z, z) for z in zones)]


class PasswordForm(Posted):
    old = PasswordField(said(_l("Password now")), [needed(), at_most(1000)])
    new = PasswordField(said(_l("New password")), [needed(), at_most(1000)])
    again = PasswordField(
        said(_l("New password again")),
        [needed(), EqualTo("new", said(_l("The two are not the same.")))],
    )
    elsewhere = BooleanField(said(_l("End my other sessions and API tokens")))


class TimeLimitForm(Posted):
    """How it reads is judged by `core.durations`, as everywhere."""

    time_limit = StringField(said(_l("New time limit")), [needed(), at_most(40)])


class RoleForm(Posted):
    role = Choice(said(_l("Role")), choices=[(one.value, said(ROLES[one])) for one in Role])


class PersonForm(RoleForm):
    """A new account. What a login may be is judged by `services.people`."""

    login = StringField(said(_l("User name")), [needed(), at_most(64)])
    unix_user = StringField(said(_l("Unix account")), [needed(), at_most(32)])
    display_name = StringField(said(_l("Name")), [needed(), at_most(100)])
    password = PasswordField(said(_l("First password")), [needed(), at_most(1000)])


class SubmitForm(Posted):
    """The fixed fields of the submit form; `submit_form` adds those of a template."""

    form_key = HiddenField(
        validators=[
            InputRequired(said(_l("The form had lost its number. Send it again."))),
            at_most(64),
        ]
    )
    template = StringField(said(_l("Template")), [needed(), at_most(64)])
    group = Choice(said(_l("Group")), [needed()], judged=True)
    partition = Choice(said(_l("Partition")), [needed()], judged=True)
    qos = Choice(said(_l("QoS")), [needed()], judged=True)
    gpu_type = Choice(said(_l("GPU type")), judged=True)
    nodes = StringField(said(_l("Nodes")), [needed(), at_most(20)])
    nproc_per_node = StringField(said(_l("Processes on each node")), [needed(), at_most(20)])
    time_limit = StringField(said(_l("Time limit")), [needed(), at_most(40)])
    name = StringField(said(_l("Job name")), [needed(), at_most(1000)])
    working_directory = StringField(said(_l("Working folder")), [needed(), at_most(LONGEST_LINE)])
    environment = Choice(said(_l("Environment")), judged=True)

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
        own[f"{VALUE}{CHOSEN_GPUS}"] = StringField(validators=[at_most(20)])
    own[f"{VALUE}{OWN_PATH}"] = StringField(validators=[at_most(LONGEST_LINE)])
    return type("TemplateForm", (SubmitForm,), own)


def _control(question: Question) -> object:
    if question.kind is FieldKind.BOOL:
        return BooleanField()
    first = [needed()] if question.required else []
    if question.kind is FieldKind.CHOICE:
        choices = [(one.value, one.value) for one in question.choices]
        return Choice(validators=first, choices=choices, judged=True)
    if question.kind is FieldKind.TABLE:
        return TextAreaField(validators=[*first, at_most(LONGEST_TABLE)])
    return StringField(validators=[*first, at_most(LONGEST_LINE)])


def _typed(field: Field) -> str:
    if isinstance(field, BooleanField):
        return "true" if field.data else ""
    return str(field.data or "")


def _bare(name: str) -> str:
    return name.removeprefix(VALUE)
