"""Words of the pages of waits: dimensions, their values, definitions."""

from gateway.core.wait_figures import UNKNOWN, Dimension, Wait
from gateway.web.texts import Lazy, gettext
from gateway.web.texts import lazy_gettext as _l

DIMENSION_WORDS: dict[Dimension, Lazy] = {
    Dimension.PARTITION: _l("Partition"),
    Dimension.GPU_TYPE: _l("GPU type"),
    Dimension.GPU_CLASS: _l("Cards per job"),
    Dimension.QOS: _l("QoS"),
    Dimension.GROUP: _l("Group"),
    Dimension.USER: _l("Person"),
    Dimension.TEMPLATE: _l("Template"),
    Dimension.LIMIT_CLASS: _l("Time limit"),
    Dimension.STATE: _l("State"),
    Dimension.SOURCE: _l("Set of jobs"),
    Dimension.CLUSTER: _l("Cluster"),
}
WAIT_WORDS: dict[Wait, Lazy] = {
    Wait.ELIGIBLE: _l("Queue wait"),
    Wait.SUBMIT: _l("Submit to start"),
}
WAIT_MEANINGS: dict[Wait, Lazy] = {
    Wait.ELIGIBLE: _l(
        "From the moment at which the job could have started to its start. Dependencies, holds and"
        " begin times come before it: they are the deferral."
    ),
    Wait.SUBMIT: _l(
        "From submit to start, with the deferral: what most other sites publish. Nothing is left"
        " out."
    ),
}
_LIMITS: dict[str, Lazy] = {
    "≤1h": _l("up to 1 h"),
    "≤4h": _l("1 to 4 h"),
    "≤12h": _l("4 to 12 h"),
    "≤24h": _l("12 to 24 h"),
    "≤3d": _l("1 to 3 d"),
    ">3d": _l("more than 3 d"),
}
_CARDS: dict[str, Lazy] = {
    "0": _l("no card"),
    "1": _l("1 card"),
    "2-4": _l("2–4 cards"),
    "5-8": _l("5–8 cards"),
    ">8": _l("more than 8 cards"),
}


def inner_word(dimension: Dimension) -> str:
    """The dimension in the middle of a sentence: "cards per job", but "GPU type"."""
    word = str(DIMENSION_WORDS[dimension])
    return word if word[1:2].isupper() or word.startswith("QoS") else word[:1].lower() + word[1:]


def value_word(dimension: Dimension, key: str) -> str:
    """What a value is called. Names are as Slurm has them; the empty key is the unknown one."""
    if key in {"", UNKNOWN}:
        return _unknown(dimension)
    if dimension is Dimension.GPU_CLASS:
        return str(_CARDS.get(key, key))
    if dimension is Dimension.LIMIT_CLASS:
        return str(_LIMITS.get(key, key))
    return key


def _unknown(dimension: Dimension) -> str:
    """Who has none, where having none says something."""
    if dimension in {Dimension.TEMPLATE, Dimension.GPU_TYPE}:
        return gettext("none or not known")
    if dimension is Dimension.LIMIT_CLASS:
        return gettext("no limit or not known")
    if dimension is Dimension.SOURCE:
        return gettext("this portal's own")
    return gettext("not known")
