"""What all forms are made of: a base, a choice, and validators whose texts are translated."""

from collections.abc import Sequence
from typing import Any, cast

from flask_wtf import FlaskForm
from wtforms import StringField
from wtforms.validators import InputRequired, Length, ValidationError

from gateway.web.messages import Shown
from gateway.web.texts import Lazy
from gateway.web.texts import lazy_gettext as _l


def said(text: Lazy) -> str:
    """WTForms only shows or formats it, in the reader's request; its stubs want a plain text."""
    return cast(str, text)


def needed() -> InputRequired:
    return InputRequired(said(_l("Fill this in.")))


def at_most(longest: int) -> Length:
    return Length(max=longest, message=said(_l("At most %(max)s characters.")))


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
