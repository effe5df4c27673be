"""Datasets of the catalogue in the form: a list to choose from, beside the field for words."""

from collections.abc import Sequence

from werkzeug.datastructures import MultiDict

from gateway.core.datasets import FIELD, Offered
from gateway.web.forms import VALUE
from gateway.web.texts import gettext
from gateway.web.views.datasetview import size, speed

PICK = "pick-datasets"


def options(offered: Sequence[Offered]) -> list[tuple[str, str]]:
    """The newest version of each, with size, licence and speed; the value pins the version."""
    newest: dict[str, Offered] = {}
    for one in offered:
        newest.setdefault(one.name, one)
    return [(one.word, _label(one)) for one in newest.values()]


def merged(sent: MultiDict[str, str]) -> MultiDict[str, str]:
    """What was sent, with what was picked among the words of the field."""
    picked = sent.get(PICK, "").strip()
    if not picked:
        return sent
    changed = MultiDict(sent)
    words = changed.get(f"{VALUE}{FIELD}", "").split()
    if picked not in words:
        changed[f"{VALUE}{FIELD}"] = " ".join([*words, picked])
    changed.pop(PICK)
    return changed


def _label(one: Offered) -> str:
    facts = [f"{one.word} – {one.title}", size(one.bytes), one.licence]
    if one.read_mbps is not None:
        facts.append(gettext("reads at %(speed)s", speed=speed(one.read_mbps)))
    if one.health == "damaged":
        facts.append(gettext("files differ from the manifest"))
    return " · ".join(facts)
