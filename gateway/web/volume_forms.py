"""The forms of volumes: shape only; sizes are read by core.volumes."""

from collections.abc import Sequence
from typing import ClassVar

from wtforms import BooleanField, StringField, TextAreaField
from wtforms.validators import Optional, ValidationError

from gateway.core.volumes import parse_size
from gateway.errors import Refused
from gateway.web.formbase import Choice, at_most, needed, said
from gateway.web.messages import error_sentence
from gateway.web.money_forms import MoneyForm
from gateway.web.texts import lazy_gettext as _l

_LONG = 2000


class SizeField(StringField):
    """`bytes` is what was read; None when the field was left empty."""

    bytes: int | None = None

    def pre_validate(self, form: object) -> None:  # noqa: ARG002  # WTForms calls it so
        if not (self.data or "").strip():
            return
        try:
            self.bytes = parse_size(str(self.data))
        except Refused as error:
            raise ValidationError(error_sentence(error)) from error


def _size(label: str, *, optional: bool = False) -> SizeField:
    return SizeField(label, [Optional() if optional else needed(), at_most(40)])


class GrowForm(MoneyForm):
    size = _size(said(_l("New limit")))
    text = TextAreaField(said(_l("What for")), [at_most(_LONG)])


class LimitForm(MoneyForm):
    size = _size(said(_l("Limit")), optional=True)
    below_use = BooleanField(said(_l("Even when more is used: nobody can write there then")))
    text = StringField(said(_l("Why")), [at_most(_LONG)])


class AnswerForm(MoneyForm):
    answer = StringField(said(_l("Answer")), [at_most(_LONG)])


class MakeForm(MoneyForm):
    area = Choice(said(_l("Area")))
    name = StringField(said(_l("Name")), [needed(), at_most(40)])
    group = StringField(said(_l("Group")), [needed(), at_most(64)])
    size = _size(said(_l("Limit")), optional=True)
    owner = StringField(said(_l("Unix group")), [at_most(64)])

    def offer(self, areas: Sequence[str]) -> None:
        self.area.choices = [(name, name) for name in areas]


class TakeInForm(MoneyForm):
    area = StringField(said(_l("Area")), [needed(), at_most(40)])
    name = StringField(said(_l("Name")), [needed(), at_most(40)])
    group = StringField(said(_l("Group")), [needed(), at_most(64)])


class VolumeCapForm(MoneyForm):
    PLACES: ClassVar = {"group": "cap_group", "size": "cap_size"}
    cap_group = StringField(said(_l("Group")), [needed(), at_most(64)])
    cap_size = _size(said(_l("Together at most")), optional=True)


class StoragePriceForm(MoneyForm):
    PLACES: ClassVar = {"area": "price_area"}
    price_area = Choice(said(_l("Area")))
    price = StringField(said(_l("A GB and month")), [needed(), at_most(40)])

    def offer(self, areas: Sequence[str], everywhere: str) -> None:
        self.price_area.choices = [("", everywhere), *((name, name) for name in areas)]
