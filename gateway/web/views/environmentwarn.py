"""What the form says of an environment that does not go with the template or the card."""

from collections.abc import Mapping

from flask import url_for
from markupsafe import Markup, escape

from gateway.core.ask import Ask
from gateway.core.env_facts import Clash, Lack
from gateway.core.environments import EnvironmentKind
from gateway.core.manifest import Manifest
from gateway.core.offer import PartitionChoice
from gateway.core.policy import Reading
from gateway.services.environment_fit import fit
from gateway.store.environments import CheckRow
from gateway.web import offering
from gateway.web.deps import deps
from gateway.web.messages import sentence
from gateway.web.show import ago
from gateway.web.texts import gettext
from gateway.web.views import snapshotwarn
from gateway.web.views.formwarn import Warned


def warnings(
    ask: Ask, reading: Reading, manifest: Manifest, partition: PartitionChoice | None
) -> Mapping[str, Warned]:
    """At the field of the environment; nothing where nothing is known."""
    chosen = [one for one in offering.environments() if one.name == ask.environment]
    if not chosen:
        return {}
    if chosen[0].kind is EnvironmentKind.SNAPSHOT:
        return snapshotwarn.warnings(chosen[0].name)
    environment, gpu_type = chosen[0], _gpu_type(reading, partition)
    have = deps()
    found = fit(environment, manifest.needs, gpu_type, cards=have.cards, begin=have.read)
    told: list[str] = [clash_line(one, environment.name, gpu_type) for one in found.clashes]
    if found.failed is not None:
        told.append(_failed(found.failed))
    if not told:
        return {}
    text = Markup(" ").join([*told, _link(environment.name)])
    return {"environment": Warned("environment", text, None, "")}


def clash_line(clash: Clash, environment: str, gpu_type: str) -> str:
    """One sentence of what does not go together."""
    facts = {
        "name": clash.name,
        "has": clash.has,
        "wants": clash.wants,
        "environment": environment,
        "gpu": gpu_type,
    }
    match clash.lack:
        case Lack.PACKAGE:
            return gettext("The template needs %(wants)s, which %(environment)s lacks.", **facts)
        case Lack.VERSION:
            return gettext(
                "The template needs %(wants)s; %(environment)s has %(name)s %(has)s.", **facts
            )
        case Lack.ARCH:
            return gettext(
                "%(name)s of %(environment)s is built for %(has)s, which does not run on %(gpu)s"
                " (%(wants)s).",
                **facts,
            )
        case Lack.DRIVER:
            return gettext(
                "%(environment)s needs NVIDIA's driver %(wants)s or newer; nodes with %(gpu)s have"
                " %(has)s.",
                **facts,
            )


def _gpu_type(reading: Reading, partition: PartitionChoice | None) -> str:
    if not reading.gpus:
        return ""
    kinds = [kind.name for kind in partition.gpus] if partition else []
    return reading.gpu_type or (kinds[0] if len(kinds) == 1 else "")


def _failed(check: CheckRow) -> Markup:
    text = escape(gettext("The check on %(gpu)s failed %(ago)s: %(why)s"))
    why = sentence(check.code or "check_failed")
    return text % {"gpu": check.gpu_type, "ago": ago(check.at), "why": why}


def _link(name: str) -> Markup:
    place = url_for("environments.show", name=name)
    return Markup('<a href="{}">{}</a>').format(place, escape(gettext("What is known of it")))
