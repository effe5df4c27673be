"""The form of an environment: what stands in it goes to the one validator as it was typed."""

import json
from collections.abc import Mapping
from typing import ClassVar

from flask_wtf.file import FileField
from wtforms import StringField, TextAreaField

from gateway.core.environments import Environment, EnvironmentKind
from gateway.errors import Refused
from gateway.services.environment_publish import imported
from gateway.web.formbase import Choice, at_most, needed, said
from gateway.web.money_forms import KeyedForm, MoneyForm
from gateway.web.texts import Lazy
from gateway.web.texts import lazy_gettext as _l

KIND_TEXTS: Mapping[EnvironmentKind, Lazy] = {
    EnvironmentKind.VENV: _l("Virtual environment"),
    EnvironmentKind.CONDA: _l("Conda"),
    EnvironmentKind.MODULE: _l("Modules"),
    EnvironmentKind.PREFIX: _l("Folder with programs"),
    EnvironmentKind.APPTAINER: _l("Apptainer image"),
}
_LONGEST = 4000
LONGEST_FILE = 64 * 1024


class EnvironmentForm(MoneyForm):
    """Texts only: `table` is what they come to."""

    PLACES: ClassVar[Mapping[str, str]] = {"title": "title_en", "facts": "versions"}

    group = Choice(said(_l("For whom")), judged=True)
    name = StringField(said(_l("Name")), [needed(), at_most(64)])
    title_en = StringField(said(_l("Title in English")), [needed(), at_most(120)])
    title_zh = StringField(said(_l("Title in Chinese")), [at_most(120)])
    kind = Choice(said(_l("Kind")))
    path = StringField(said(_l("Folder")), [at_most(1000)])
    conda_env = StringField(said(_l("Conda environment")), [at_most(200)])
    modules = StringField(said(_l("Modules")), [at_most(1000)])
    module_path = StringField(said(_l("Folder of modules")), [at_most(1000)])
    image = StringField(said(_l("Image")), [at_most(1000)])
    binds = StringField(said(_l("Folders to bind")), [at_most(_LONGEST)])
    versions = TextAreaField(said(_l("Versions")), [at_most(_LONGEST)])
    archs = TextAreaField(said(_l("Cards of its builds")), [at_most(_LONGEST)])
    min_driver = StringField(said(_l("Oldest driver")), [at_most(40)])
    kit = StringField(said(_l("Programs")), [at_most(_LONGEST)])

    def offer(self, groups: tuple[str, ...]) -> "EnvironmentForm":
        """The choices of the selects, in the reader's language."""
        self.kind.choices = [(kind.value, str(text)) for kind, text in KIND_TEXTS.items()]
        self.group.choices = [(one, one or str(_l("The whole site"))) for one in groups]
        return self

    def table(self) -> dict[str, object]:
        """As environments.toml would have it."""
        english = _words(self.title_en.data)
        whole: dict[str, object] = {
            "path": (self.path.data or "").strip(),
            "conda_env": (self.conda_env.data or "").strip(),
            "modules": (self.modules.data or "").split(),
            "module_path": (self.module_path.data or "").strip(),
            "image": (self.image.data or "").strip(),
            "binds": (self.binds.data or "").split(),
            "facts": self._facts(),
        }
        return {
            "name": (self.name.data or "").strip(),
            "kind": self.kind.data or "",
            "title": {"en": english, "zh_Hans": _words(self.title_zh.data) or english},
            **{key: value for key, value in whole.items() if value},
        }

    def fill(self, environment: Environment) -> None:
        """What is there now, for a change of it."""
        facts = environment.facts
        shown = {
            "group": environment.group,
            "name": environment.name,
            "title_en": environment.title.en,
            "title_zh": environment.title.zh_Hans,
            "kind": environment.kind.value,
            "path": environment.path,
            "conda_env": environment.conda_env,
            "modules": " ".join(environment.modules),
            "module_path": environment.module_path,
            "image": environment.image,
            "binds": " ".join(environment.binds),
            "versions": "\n".join(f"{name} {one}" for name, one in facts.versions.items()),
            "archs": "\n".join(f"{name} {' '.join(one)}" for name, one in facts.archs.items()),
            "min_driver": facts.min_driver,
            "kit": " ".join(facts.kit),
        }
        for name, text in shown.items():
            self[name].data = text

    def _facts(self) -> dict[str, object]:
        versions = dict(_line(line) for line in _lines(self.versions.data))
        archs = {name: rest.split() for name, rest in map(_line, _lines(self.archs.data))}
        whole: dict[str, object] = {
            "versions": versions,
            "archs": archs,
            "min_driver": (self.min_driver.data or "").strip(),
            "kit": (self.kit.data or "").split(),
        }
        return {key: value for key, value in whole.items() if value}


class CheckForm(KeyedForm):
    """Which type of card; an empty word is a node without one."""

    gpu_type = StringField(validators=[at_most(100)])


class FileForm(MoneyForm):
    """An exported environment."""

    group = Choice(said(_l("For whom")), judged=True)
    file = FileField(said(_l("Exported file")), [needed()])

    def table(self) -> dict[str, object]:
        """The table in the file. Refused `environment_file`."""
        raw = self.file.data.stream.read(LONGEST_FILE + 1)
        try:
            return imported(json.loads(raw) if len(raw) <= LONGEST_FILE else None)
        except (ValueError, RecursionError) as error:
            raise Refused("environment_file", field="file") from error


def _words(text: str | None) -> str:
    return " ".join((text or "").split())


def _lines(text: str | None) -> list[str]:
    return [line.strip() for line in (text or "").splitlines() if line.strip()]


def _line(line: str) -> tuple[str, str]:
    """A name and what stands behind it."""
    name, _, rest = line.partition(" ")
    return name, rest.strip()
