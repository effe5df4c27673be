"""The forms of contribution. Amounts and points are decimals, read exactly by `core.credits`."""

from collections.abc import Mapping
from datetime import date
from typing import ClassVar

from wtforms import BooleanField, HiddenField, StringField, TextAreaField
from wtforms.validators import Optional, ValidationError

from gateway.core.contribution import Counted, Feed, Formula, Kind, Rules, Shape, Tier
from gateway.core.credits import BadCredits, format_credits, parse_credits
from gateway.errors import Refused
from gateway.web.contribution_texts import COUNTED, FEEDS, SHAPES
from gateway.web.formbase import Choice, at_most, needed, said
from gateway.web.messages import sentence
from gateway.web.money_forms import AmountField, KeyedForm, MoneyForm, WholeField
from gateway.web.texts import lazy_gettext as _l

_LONGEST_NOTE = 2000
_LONGEST_NUMBER = 40
_LONGEST_LIST = 20_000


class DateField(StringField):
    """`day` is a day of the site's zone; None when the field was left empty."""

    day: date | None = None

    def pre_validate(self, form: object) -> None:  # noqa: ARG002  # WTForms calls it so
        text = (self.data or "").strip()
        if not text:
            return
        try:
            self.day = date.fromisoformat(text)
        except ValueError as error:
            raise ValidationError(sentence("bad_day")) from error


def _number(label: str, *, optional: bool = False) -> AmountField:
    first = Optional() if optional else needed()
    return AmountField(label, [first, at_most(_LONGEST_NUMBER)])


def _note() -> StringField:
    return StringField(said(_l("Note")), [Optional(), at_most(_LONGEST_NOTE)])


def typed(amount: int) -> str:
    """As one would type it, and as the form reads it: 3, 12000, 0.25."""
    return format_credits(amount).replace(",", "").rstrip("0").removesuffix(".")


class LineForm(KeyedForm):
    group = StringField(said(_l("Group")), [needed(), at_most(200)])
    kind = Choice(said(_l("Kind")), [needed()], judged=True)
    amount = _number(said(_l("Quantity")))
    day = DateField(said(_l("From")), [Optional(), at_most(40)])
    note = _note()


class EndForm(MoneyForm):
    PLACES: ClassVar[Mapping[str, str]] = {"ended_on": "on"}
    on = DateField(said(_l("The first day without it")), [needed(), at_most(40)])


class CorrectForm(MoneyForm):
    amount = _number(said(_l("Quantity")))
    day = DateField(said(_l("From")), [needed(), at_most(40)])
    ended_on = DateField(said(_l("The first day without it")), [Optional(), at_most(40)])
    note = _note()


class _RulesForm(MoneyForm):
    """`version` is the one that the page showed: nobody's change is lost unseen."""

    version = HiddenField(validators=[Optional(), at_most(20)])

    @property
    def expected(self) -> int | None:
        text = self.version.data or ""
        return int(text) if text.isascii() and text.isdigit() else None


class KindForm(_RulesForm):
    key = StringField(said(_l("Short name")), [needed(), at_most(32)])
    name = StringField(said(_l("Name")), [needed(), at_most(60)])
    unit = StringField(said(_l("Counted in")), [needed(), at_most(60)])
    weight = _number(said(_l("Points a unit")))
    half_life = WholeField(said(_l("Half-life, days")), [Optional(), at_most(20)])
    counted = Choice(
        said(_l("Counts")), choices=[(one.value, said(word)) for one, word in COUNTED.items()]
    )
    feed = Choice(
        said(_l("Where lines come from")),
        choices=[(one.value, said(word)) for one, word in FEEDS.items()],
    )

    def made(self) -> Kind:
        return Kind(
            key=(self.key.data or "").strip(),
            name=(self.name.data or "").strip(),
            unit=(self.unit.data or "").strip(),
            weight=self.weight.credits or 0,
            half_life_days=self.half_life.number,
            counted=Counted(self.counted.data or ""),
            feed=Feed(self.feed.data or ""),
        )


class RemoveForm(_RulesForm):
    """The key of the kind stands in the address."""


class AutomaticForm(_RulesForm):
    automatic = BooleanField(said(_l("The nightly change is applied by itself")))


class FormulaForm(_RulesForm):
    """The whole of it: what is left out here is not set."""

    sets_shares = BooleanField(said(_l("Set shares")))
    shape = Choice(
        said(_l("Shares grow")), choices=[(one.value, said(word)) for one, word in SHAPES.items()]
    )
    base = WholeField(said(_l("Base shares")), [needed(), at_most(20)])
    scale = _number(said(_l("Shares a point")))
    cap = _number(said(_l("Cap, in points")), optional=True)
    least = WholeField(said(_l("Fewest shares")), [needed(), at_most(20)])
    most = WholeField(said(_l("Most shares")), [needed(), at_most(20)])
    tiers = TextAreaField(said(_l("QoS from points on")), [at_most(_LONGEST_LIST)])
    left_alone = TextAreaField(said(_l("Groups that are left alone")), [at_most(_LONGEST_LIST)])

    @classmethod
    def of(cls, rules: Rules, version: int | None) -> "FormulaForm":
        formula = rules.formula or Formula()
        return cls(
            formdata=None,
            data={
                "version": str(version or ""),
                "sets_shares": rules.formula is not None or not rules.tiers,
                "shape": formula.shape.value,
                "base": str(formula.base),
                "scale": typed(formula.scale),
                "cap": typed(formula.cap) if formula.cap else "",
                "least": str(formula.least),
                "most": str(formula.most),
                "tiers": "\n".join(f"{typed(tier.points)}: {tier.qos}" for tier in rules.tiers),
                "left_alone": "\n".join(rules.left_alone),
            },
        )

    def formula(self) -> Formula | None:
        if not self.sets_shares.data:
            return None
        shape = Shape(self.shape.data or "")
        return Formula(
            shape=shape,
            base=self.base.number or 0,
            scale=self.scale.credits or 0,
            cap=self.cap.credits if shape is Shape.CAPPED else None,
            least=self.least.number or 0,
            most=self.most.number or 0,
        )

    def groups(self) -> tuple[str, ...]:
        return tuple(sorted({*(self.left_alone.data or "").replace(",", " ").split()}))

    def tier_rows(self) -> tuple[Tier, ...]:
        """Refused contribution_tier_shape."""
        lines = (line.strip() for line in (self.tiers.data or "").splitlines())
        return tuple(sorted((_tier(line) for line in lines if line), key=lambda one: one.points))


def _tier(line: str) -> Tier:
    points, colon, qos = line.partition(":")
    try:
        if not colon or not qos.strip():
            raise BadCredits("credits_unreadable")
        return Tier(parse_credits(points), qos.strip())
    except BadCredits as error:
        raise Refused("contribution_tier_shape", field="tiers") from error
