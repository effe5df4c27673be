"""The language of a template's script: Jinja2 cut down, in which every value leaves quoted."""

import shlex
import unicodedata
from collections.abc import Mapping

from jinja2 import DictLoader, StrictUndefined, Undefined
from jinja2.sandbox import SandboxedEnvironment

from gateway.core.answers import BadValue


class Trusted(str):
    """Text of the renderer itself, the only kind that is not quoted."""

    __slots__ = ()


def _finalize(value: object) -> object:
    if isinstance(value, Trusted | Undefined):
        return value  # an Undefined raises when it is printed
    if value is None:
        # A number left empty: without a word in its place, the next one would be taken for it.
        raise BadValue("field_required", "")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, tuple | list):
        return " ".join(str(_finalize(word)) for word in value)
    if isinstance(value, str):
        return shlex.quote(_inert(str(value)))
    raise TypeError(f"{type(value).__name__} cannot stand in a script")


def _inert(value: str) -> str:
    """`clean` has refused these already; a value that came another way stops here."""
    for place, character in enumerate(value, start=1):
        if unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"}:
            code = f"U+{ord(character):04X}"
            raise BadValue("field_control_character", "", place=place, character=code)
    return value


def language(sources: Mapping[str, str]) -> SandboxedEnvironment:
    """The template language: no globals, nothing undefined, every value quoted."""
    environment = SandboxedEnvironment(
        loader=DictLoader(sources),
        undefined=StrictUndefined,
        autoescape=False,  # shell, not HTML
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals.clear()
    return environment
