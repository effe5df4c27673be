"""The forms of money. Amounts are typed and read by `core.credits`; a key in the form makes a
repeat harmless, however often somebody presses."""

import secrets
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import ClassVar

from wtforms import BooleanField, HiddenField, StringField, TextAreaField
from wtforms.validators import Optional, ValidationError

from gateway.core.access import Viewer
from gateway.core.credits import BadCredits, parse_credits
from gateway.core.evidence import parse_span
from gateway.core.ledger import AtZero
from gateway.core.pricing import Preempted
from gateway.core.training.stalls import OnStall
from gateway.errors import Refused
from gateway.web.deps import deps
from gateway.web.formbase import Choice, Posted, at_most, needed, said
from gateway.web.i18n import zone
from gateway.web.messages import error_sentence, sentence
from gateway.web.money_texts import ACTIONS, AT_ZERO, CATEGORIES, GRANTS
from gateway.web.texts import lazy_gettext as _l
from gateway.web.training_texts import ON_STALL

_LONGEST_NOTE = 2000
_LONGEST_AMOUNT = 40


class AmountField(StringField):
    """`credits` is what was read; None when the field was left empty."""

    credits: int | None = None

    def pre_validate(self, form: object) -> None:  # noqa: ARG002  # WTForms calls it so
        if not (self.data or "").strip():
            return
        try:
            self.credits = parse_credits(str(self.data))
        except BadCredits as error:
            raise ValidationError(error_sentence(error)) from error


class DayField(StringField):
    """`start` and `end` of that day in the reader's zone; None when the field was left empty."""

    start: datetime | None = None
    end: datetime | None = None

    def pre_validate(self, form: object) -> None:  # noqa: ARG002
        if not (self.data or "").strip():
            return
        try:
            day = date.fromisoformat(str(self.data).strip())
            self.start = _local(datetime.combine(day, time.min))
            self.end = _local(datetime.combine(day + timedelta(days=1), time.min))
        except (ValueError, OverflowError) as error:
            raise ValidationError(sentence("bad_day")) from error


class MomentField(StringField):
    """`at` is the moment typed in the reader's zone; None when the field was left empty."""

    at: datetime | None = None

    def pre_validate(self, form: object) -> None:  # noqa: ARG002
        if not (self.data or "").strip():
            return
        try:
            self.at = _local(datetime.fromisoformat(str(self.data).strip()))
        except (ValueError, OverflowError) as error:
            raise ValidationError(sentence("bad_moment")) from error


class WholeField(StringField):
    """`number` is the whole number that was typed; None when the field was left empty."""

    number: int | None = None

    def pre_validate(self, form: object) -> None:  # noqa: ARG002
        text = (self.data or "").strip()
        if not text:
            return
        if not (text.isascii() and text.isdigit() and len(text) < 10):
            raise ValidationError(sentence("field_integer"))
        self.number = int(text)


class MoneyForm(Posted):
    """`trouble` is what was refused and belongs to no field. `PLACES` leads from the names that
    services use to those of this form."""

    PLACES: ClassVar[Mapping[str, str]] = {}
    trouble: str = ""

    def refused(self, refusal: Refused) -> None:
        """Say it at its field."""
        name = self.PLACES.get(refusal.field or "", refusal.field or "")
        if name in self:
            self[name].errors = [error_sentence(refusal)]
        else:
            self.trouble = error_sentence(refusal)


def new_key() -> str:
    return secrets.token_hex(16)


class KeyedForm(MoneyForm):
    """`key` names this one act: the same form sent twice does it once."""

    key = HiddenField(validators=[needed(), at_most(64)], default=new_key)


def _amount(label: str, *, optional: bool = False) -> AmountField:
    first = Optional() if optional else needed()
    return AmountField(label, [first, at_most(_LONGEST_AMOUNT)])


class CapForm(MoneyForm):
    PLACES: ClassVar[Mapping[str, str]] = {"user": "cap_user", "amount": "cap_amount"}
    cap_user = Choice(said(_l("Member")), [needed()], judged=True)
    cap_amount = AmountField(said(_l("At most a month")), [Optional(), at_most(_LONGEST_AMOUNT)])


class PackageForm(KeyedForm):
    offer = Choice(said(_l("Package")), [needed()], judged=True)
    card_hours = WholeField(said(_l("Card-hours")), [needed(), at_most(20)])


class CodeForm(MoneyForm):
    code = StringField(said(_l("Code")), [needed(), at_most(64)])


class LendForm(KeyedForm):
    PLACES: ClassVar[Mapping[str, str]] = {
        "group": "lend_to",
        "amount": "lend_amount",
        "due": "lend_due",
    }
    lend_to = StringField(said(_l("To which group")), [needed(), at_most(200)])
    lend_amount = _amount(said(_l("How much")))
    lend_due = DayField(said(_l("Until the end of")), [Optional(), at_most(40)])


class ReturnForm(KeyedForm):
    PLACES: ClassVar[Mapping[str, str]] = {"amount": "return_amount"}
    return_amount = _amount(said(_l("Give back")))


class RulesForm(MoneyForm):
    at_zero = Choice(
        said(_l("When no credit is left")),
        choices=[(one.value, said(AT_ZERO[one][0])) for one in AtZero],
    )
    overdraft = _amount(said(_l("Overdraft")))
    warning_minutes = WholeField(said(_l("Warning, in minutes")), [needed(), at_most(20)])


class StallForm(MoneyForm):
    """No money, but it stands among the rules that leaders set."""

    on_stall = Choice(
        said(_l("When a training run stalls")),
        choices=[(one.value, said(ON_STALL[one][0])) for one in OnStall],
    )


class BudgetForm(MoneyForm):
    PLACES: ClassVar[Mapping[str, str]] = {"starts": "first", "ends": "last"}
    name = StringField(said(_l("Name")), [needed(), at_most(120)])
    amount = _amount(said(_l("Amount")))
    first = DayField(said(_l("First day")), [needed(), at_most(40)])
    last = DayField(said(_l("Last day")), [needed(), at_most(40)])


class LineForm(MoneyForm):
    """Something that was paid outside the ledger."""

    category = Choice(
        said(_l("What for")),
        choices=[(one.value, said(word)) for one, word in CATEGORIES.items()],
    )
    amount = _amount(said(_l("Amount")))
    note = StringField(said(_l("Note")), [needed(), at_most(_LONGEST_NOTE)])


class ThresholdForm(MoneyForm):
    percent = WholeField(said(_l("At percent")), [needed(), at_most(10)])
    action = Choice(
        said(_l("What happens")),
        choices=[
            *((one.value, said(word)) for one, word in ACTIONS.items()),
            ("none", said(_l("nothing: take it away"))),
        ],
    )


class ApproveForm(MoneyForm):
    PLACES: ClassVar[Mapping[str, str]] = {"percent": "until"}
    until = WholeField(said(_l("Let jobs go on up to percent")), [needed(), at_most(10)])


class GiveForm(KeyedForm):
    """A grant, or a top-up of the balance."""

    PLACES: ClassVar[Mapping[str, str]] = {"carry_over": "carry_over", "reason": "reason"}
    to = StringField(said(_l("Group")), [needed(), at_most(200)])
    amount = _amount(said(_l("Amount")))
    reason = Choice(
        said(_l("As")),
        choices=[
            ("top_up", said(_l("Top-up of the balance"))),
            *((name, said(word)) for name, word in GRANTS.items()),
        ],
    )
    expires = DayField(said(_l("Until the end of")), [Optional(), at_most(40)])
    carry_over = WholeField(said(_l("Carried over, percent")), [Optional(), at_most(20)])
    note = StringField(said(_l("Note")), [Optional(), at_most(_LONGEST_NOTE)])


class PriceForm(MoneyForm):
    PLACES: ClassVar[Mapping[str, str]] = {"list": "list_name", "per_hour": "price"}
    resource = StringField(said(_l("GPU type, or cpu")), [needed(), at_most(64)])
    price = StringField(said(_l("Price an hour")), [needed(), at_most(_LONGEST_AMOUNT)])
    list_name = StringField(said(_l("List")), [needed(), at_most(64)])
    starts = MomentField(said(_l("From")), [Optional(), at_most(40)])
    backdated = BooleanField(said(_l("May begin in the past")))


class TermsForm(MoneyForm):
    PLACES: ClassVar[Mapping[str, str]] = {"starts": "terms_starts"}
    qos = StringField(said(_l("QoS")), [needed(), at_most(64)])
    factor = StringField(said(_l("Factor")), [needed(), at_most(_LONGEST_AMOUNT)])
    preempted = Choice(
        said(_l("Preempted runs")),
        choices=[
            (Preempted.PAY.value, said(_l("are paid"))),
            (Preempted.FREE.value, said(_l("are free"))),
        ],
    )
    terms_starts = MomentField(said(_l("From")), [Optional(), at_most(40)])


class OfferForm(MoneyForm):
    PLACES: ClassVar[Mapping[str, str]] = {"per_hour": "price"}
    name = StringField(said(_l("Name")), [needed(), at_most(64)])
    resource = StringField(said(_l("GPU type")), [needed(), at_most(64)])
    price = StringField(said(_l("Price a card-hour")), [needed(), at_most(_LONGEST_AMOUNT)])
    days = WholeField(said(_l("Good for days")), [needed(), at_most(20)])


class CampaignForm(MoneyForm):
    PLACES: ClassVar[Mapping[str, str]] = {}
    code = StringField(said(_l("Code")), [needed(), at_most(32)])
    amount = _amount(said(_l("Amount for each group")))
    days = WholeField(said(_l("Good for days")), [needed(), at_most(20)])
    stock = WholeField(said(_l("How many groups")), [needed(), at_most(20)])
    ends = DayField(said(_l("Redeemed until the end of")), [Optional(), at_most(40)])


class SpanField(StringField):
    """`seconds` of a time such as `24`, `1.5`, `24:00:00` or `1-3`; None when it was left empty."""

    seconds: int | None = None

    def pre_validate(self, form: object) -> None:  # noqa: ARG002
        if not (self.data or "").strip():
            return
        try:
            self.seconds = parse_span(str(self.data))
        except ValueError as error:
            raise ValidationError(sentence("seconds_unreadable")) from error


class DecisionForm(MoneyForm):
    """`cards` are the fields `cards-TYPE`: which there are comes with the run."""

    PLACES: ClassVar[Mapping[str, str]] = {"seconds": "span", "gpus": "cards"}
    span = SpanField(said(_l("Time")), [Optional(), at_most(40)])
    cards = StringField(said(_l("Cards")))
    note = TextAreaField(said(_l("Why")), [at_most(_LONGEST_NOTE)])


class MonthForm(MoneyForm):
    month = StringField(said(_l("Month")), [needed(), at_most(10)])
    again = BooleanField(said(_l("Close it again, with what is known now")))


class NoteForm(MoneyForm):
    note = TextAreaField(said(_l("Why")), [at_most(_LONGEST_NOTE)])


def _local(typed: datetime) -> datetime:
    """What was typed is in the reader's zone, as the page shows times."""
    if typed.tzinfo is None:
        typed = typed.replace(tzinfo=zone(deps().settings.timezone))
    return typed.astimezone(UTC)


def key_of(form: KeyedForm, who: Viewer) -> str:
    """Nobody's key can stand for another person's act."""
    return f"{who.person_id}:{form.key.data}"
