"""A recipe as a form that is filled: what of it this person may have, and what has moved since."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from gateway.brokerclient.port import Broker
from gateway.core.access import Viewer
from gateway.core.answers import clean_all
from gateway.core.ask import Ask
from gateway.core.datasets import FIELD, Offered, find, is_word
from gateway.core.datasets import Offered as Dataset
from gateway.core.manifest import Manifest
from gateway.core.offer import Offer
from gateway.core.recipes import Recipe
from gateway.errors import BrokerRefused, BrokerSilent, BrokerUnreachable
from gateway.services import preview, quote
from gateway.services.environments import NONE, Environment, EnvironmentKind
from gateway.services.offer import offer as read_offer
from gateway.services.recipe_parts import environment_used, template_fingerprint
from gateway.services.recipe_publish import PRIVATE
from gateway.services.templates import Catalogue
from gateway.store.recipes import RecipeRow
from gateway.store.uow import Begin

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

HOME = "~"


@dataclass(frozen=True, slots=True)
class Moved:
    """What is not as it was. `left_out`: the part is empty in the form, never copied."""

    code: str
    facts: dict[str, str | int]
    left_out: bool = False


@dataclass(frozen=True, slots=True)
class Clone:
    """The form, and what has moved. `quoted` is its worst case then, `now` today (millionths)."""

    ask: Ask
    moved: tuple[Moved, ...]
    quoted: int | None = None
    now: int | None = None


@dataclass(frozen=True, slots=True)
class Site:
    """What it takes to look at a recipe here."""

    viewer: Viewer
    begin: Begin
    catalogue: Catalogue
    environments: Sequence[Environment]
    at: datetime


def clone(row: RecipeRow, *, site: Site) -> Clone:
    """Writes nothing. Values pass the form's own rules: nothing of a file is believed."""
    found = _Clone(row.recipe, read_offer(site.viewer, begin=site.begin), site)
    with site.begin() as session:
        found.environment(session)
    found.template()
    found.datasets()
    found.place()
    return found.done(site)


class _Clone:
    """One recipe as one person's form."""

    def __init__(self, recipe: Recipe, offer: Offer, site: Site) -> None:
        self._recipe, self._offer, self._site = recipe, offer, site
        self._values = {k: v for k, v in recipe.values.items() if k not in PRIVATE}
        self._environment = NONE.name
        self._moved: list[Moved] = []
        self._place: dict[str, str] = {"group": "", "partition": "", "qos": "", "gpu_type": ""}
        template = site.catalogue.get(recipe.template.name)
        self._template = template if template and not template.manifest.internal else None

    def _say(self, code: str, *, left_out: bool = False, **facts: str | int) -> None:
        self._moved.append(Moved(code, facts, left_out))

    def template(self) -> None:
        used, here = self._recipe.template, self._template
        if here is None:
            self._values = {}
            self._say("recipe_template_gone", left_out=True, name=used.name)
            return
        if not used.fingerprint:
            self._say("recipe_template_unknown", name=used.name)
        elif used.fingerprint != template_fingerprint(here):
            self._say("recipe_template_changed", name=used.name)
        self._judge(here.manifest)

    def _judge(self, manifest: Manifest) -> None:
        """Fields that are gone, and values that no form would take, are left out."""
        known = {own.name for own in manifest.fields} | {"gpus_per_node"}
        for name in sorted(self._values.keys() - known):
            del self._values[name]
            self._say("recipe_field_gone", left_out=True, name=name)
        _, refused = clean_all(manifest, self._values)
        for bad in refused:
            if bad.field in self._values and bad.field not in {None, FIELD}:
                del self._values[bad.field]
                self._say("recipe_value_refused", left_out=True, name=bad.field)

    def environment(self, session: "Session") -> None:
        used = self._recipe.environment
        if used.name in {"", NONE.name}:
            return
        offered = {one.name: one for one in self._site.environments}
        here = offered.get(used.name)
        if here is None or here.kind is EnvironmentKind.NONE:
            code = "recipe_snapshot_gone" if used.snapshot else "recipe_environment_gone"
            self._say(code, left_out=True, name=used.name)
            return
        self._environment = used.name
        now = environment_used(session, here)
        then, today = used.definition or now.definition, now.definition
        if (used.snapshot and used.snapshot != now.snapshot) or then != today:
            self._say("recipe_environment_moved", name=used.name)
        elif _differ(used.lock, now.lock) or _differ(used.facts, now.facts):
            self._say("recipe_environment_changed", name=used.name)
        elif not used.lock and not used.snapshot:
            self._say("recipe_environment_unlocked", name=used.name)

    def datasets(self) -> None:
        """Each name becomes the version that was used; one that may not be had is left out."""
        offered = self._offer.datasets
        if FIELD not in self._values:
            return
        words = []
        used = {one.name: one for one in self._recipe.datasets}
        for word in self._values[FIELD].split():
            if not is_word(word):
                words.append(word)
                continue
            name = word.partition("@")[0]
            exact = used[name].word if name in used else word
            here = find(exact, offered)
            if here is None:
                self._say("recipe_dataset_gone", left_out=True, name=exact)
                continue
            words.append(exact)
            self._newer(name, here, offered)
            manifest = used[name].manifest if name in used else ""
            if manifest and here.manifest and manifest != here.manifest:
                self._say("recipe_dataset_differs", name=exact)
        self._values[FIELD] = " ".join(words)

    def _newer(self, name: str, here: Dataset, offered: Sequence[Offered]) -> None:
        newest = find(name, offered)
        if newest is not None and newest.version > here.version:
            self._say("recipe_dataset_newer", name=here.word, newest=newest.word)

    def place(self) -> None:
        """Group, partition, QoS and card of this person's own offer, as near as may be."""
        shape, groups = self._recipe.shape, self._offer.groups
        fits = [group for group in groups if group.find_partition(shape.partition)]
        default = self._offer.default_group
        group = default if default in fits or not fits else fits[0]
        if group is None:
            return
        self._place["group"] = group.name
        partition = group.find_partition(shape.partition) or group.default_partition
        if partition is None:
            return
        self._place["partition"] = partition.name
        if partition.name != shape.partition:
            self._say("recipe_partition_gone", name=shape.partition, now=partition.name)
        kind = shape.gpu_type or (self._recipe.receipt.gpu_type if not shape.gpu_type else "")
        kinds = [one.name for one in partition.gpus]
        if kind and kind not in kinds:
            self._say("recipe_gpu_gone", left_out=True, name=kind)
        self._place["gpu_type"] = shape.gpu_type if shape.gpu_type in kinds else ""
        qos = partition.find_qos(shape.qos) or partition.default_qos
        self._place["qos"] = qos.name if qos else ""
        if qos is None or qos.name != shape.qos:
            self._say("recipe_qos_gone", name=shape.qos, now=qos.name if qos else "–")

    def done(self, site: Site) -> Clone:
        shape = self._recipe.shape
        ask = Ask(
            template=self._recipe.template.name if self._template else "",
            nodes=str(shape.nodes),
            nproc_per_node=str(shape.nproc_per_node),
            time_limit=shape.time_limit,
            name=self._recipe.name,
            working_directory=HOME,
            environment=self._environment,
            values=self._values,
            **self._place,
        )
        then = self._recipe.receipt.quoted
        now = self._price(ask, site)
        if then is not None and now is not None and then != now:
            self._say("recipe_price_changed", then=then, now=now)
        self._code()
        return Clone(ask, tuple(self._moved), then, now)

    def _code(self) -> None:
        code = self._recipe.code
        if code is None:
            return
        if code.captured:
            self._say("recipe_code_captured")
        elif code.clean is True:
            self._say("recipe_code", commit=code.commit[:12])
        else:
            self._say("recipe_code_dirty", commit=code.commit[:12])

    def _price(self, ask: Ask, site: Site) -> int | None:
        seen = preview.preview(
            ask,
            viewer=site.viewer,
            begin=site.begin,
            catalogue=site.catalogue,
            environments=site.environments,
            offer=self._offer,
        )
        found = quote.quote(
            seen.reading,
            self._offer,
            template=ask.template,
            viewer=site.viewer,
            begin=site.begin,
            now=site.at,
        )
        return found.worst.total if isinstance(found, quote.Quote) else None


def _differ(then: object, now: object) -> bool:
    """Where both are known."""
    return bool(then) and bool(now) and then != now


def checkpoints_state(recipe: Recipe, *, viewer: Viewer, broker: Broker) -> str:
    """Whether this person can read what was published with it, as the broker sees it: `readable`,
    or why not. Nothing is read."""
    try:
        state = broker.check_folder(recipe.checkpoints, user=viewer.unix_user)
    except BrokerRefused:
        return "not_permitted"
    except (BrokerUnreachable, BrokerSilent):
        return "unknown"
    if state.problem is not None:
        return state.problem
    return "readable" if state.readable else "not_permitted"
