"""The forms of the catalogue of datasets: shape only, the rules are core.datasets'."""

import secrets

from wtforms import BooleanField, HiddenField, StringField, TextAreaField

from gateway.core.access import Permission, Viewer
from gateway.services.dataset_entries import Entry
from gateway.services.dataset_versions import NewVersion
from gateway.web.dataset_texts import VISIBILITY_WORDS
from gateway.web.formbase import Choice, at_most, needed, said
from gateway.web.money_forms import MoneyForm
from gateway.web.texts import gettext
from gateway.web.texts import lazy_gettext as _l

_LONG = 4000


def _key() -> str:
    return secrets.token_hex(16)


class EntryForm(MoneyForm):
    """A new entry, or the facts of one."""

    name = StringField(said(_l("Name")), [at_most(64)])
    title = StringField(said(_l("Title")), [needed(), at_most(200)])
    licence = StringField(said(_l("Licence")), [needed(), at_most(200)])
    description = TextAreaField(said(_l("Description")), [at_most(_LONG)])
    visibility = Choice(said(_l("Who sees it")))
    group = Choice(said(_l("Whose it is")))

    def offer(self, viewer: Viewer) -> None:
        """Its choices: an own group, or the site, which administrators publish for."""
        self.visibility.choices = [(one, str(word)) for one, word in VISIBILITY_WORDS.items()]
        groups = [(one, one) for one in viewer.groups]
        site = [("", gettext("the site's"))]
        first = site + groups if viewer.may(Permission.MANAGE_DATASETS) else groups + site
        self.group.choices = first

    def entry(self) -> Entry:
        return Entry(
            self.title.data or "",
            self.licence.data or "",
            self.description.data or "",
            self.visibility.data or "",
            self.group.data or None,
        )


class VersionForm(MoneyForm):
    path = StringField(said(_l("Folder")), [needed(), at_most(4096)])
    manifest_path = StringField(said(_l("Manifest")), [at_most(4096)])
    parent = StringField(said(_l("Made from")), [at_most(80)])
    made_by = StringField(said(_l("By which recipe or job")), [at_most(200)])
    note = TextAreaField(said(_l("What is new")), [at_most(_LONG)])

    def version(self) -> NewVersion:
        return NewVersion(
            self.path.data or "",
            self.manifest_path.data or "",
            self.note.data or "",
            self.parent.data or "",
            self.made_by.data or "",
        )


class ActForm(MoneyForm):
    """A button. `key` makes a repeat harmless; `why` is for withdrawing."""

    key = HiddenField(default=_key)
    why = StringField(said(_l("Why")), [at_most(200)])


class ReaderForm(MoneyForm):
    kind = Choice(
        said(_l("Who")), choices=[("group", said(_l("Group"))), ("person", said(_l("Person")))]
    )
    who = StringField(said(_l("Name")), [needed(), at_most(64)])
    no_more = BooleanField(said(_l("No more")))


class AskForm(MoneyForm):
    group = Choice(said(_l("For whom")))
    text = TextAreaField(said(_l("What for")), [needed(), at_most(_LONG)])

    def offer(self, viewer: Viewer) -> None:
        groups = [(one, gettext("the group %(name)s", name=one)) for one in viewer.groups]
        self.group.choices = [("", gettext("myself")), *groups]


class AnswerForm(MoneyForm):
    answer = StringField(said(_l("Answer")), [at_most(200)])
    granted = Choice(said(_l("Decision")), choices=[("yes", ""), ("no", "")])
