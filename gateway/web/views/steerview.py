"""What the leaders' page of a group gets: its forms, caps, offers and loans."""

from dataclasses import dataclass
from datetime import datetime

from gateway.core.access import GroupRights, group_rights
from gateway.core.ledger import AtZero
from gateway.core.months import month_start
from gateway.core.pots import PotKind
from gateway.store import credit, ledger, prices
from gateway.store.credit import LoanRow
from gateway.store.prices import OfferRow
from gateway.store.queries import balances, people, spending, training
from gateway.store.queries.balances import Balance
from gateway.store.queries.training import RuleRow
from gateway.web.access import viewer
from gateway.web.deps import deps
from gateway.web.money import typed_amount
from gateway.web.money_forms import (
    CapForm,
    CodeForm,
    LendForm,
    MoneyForm,
    PackageForm,
    ReturnForm,
    RulesForm,
    StallForm,
)
from gateway.web.money_texts import AT_ZERO
from gateway.web.training_texts import ON_STALL
from gateway.web.views import groupview

_DEFAULT_WARNING = 30


@dataclass(frozen=True, slots=True)
class CapLine:
    user: str
    per_month: int
    spent: int


@dataclass(frozen=True, slots=True)
class LoanLine:
    """`form` gives a part back: only for what this group owes."""

    loan: LoanRow
    taken: bool
    other: str
    form: ReturnForm | None
    late: bool


@dataclass(frozen=True, slots=True)
class Choice:
    value: str
    word: str
    meaning: str


@dataclass(frozen=True, slots=True)
class SteerPage:
    name: str
    rights: GroupRights
    available: int
    free: int
    caps: list[CapLine]
    offers: list[OfferRow]
    loans: list[LoanLine]
    cap: CapForm
    package: PackageForm
    code: CodeForm
    lend: LendForm
    rules: RulesForm
    at_zero: list[Choice]
    stall: StallForm
    on_stall: list[Choice]
    stall_rule: RuleRow


def build(name: str, shown: MoneyForm | None = None, *, loan_id: int | None = None) -> SteerPage:
    """`shown` is the form that was refused: it keeps what was typed. NotFound for others than
    leaders and administrators."""
    now = deps().clock()
    with deps().read() as session:
        groupview.steered(session, viewer(), name)
        have = balances.balance(session, name, now=now)
        since = month_start(now, deps().settings.timezone)
        spend = spending.by_member(session, name, since=since, until=now)
        caps = credit.caps(session, name)
        members = people.members(session, name)
        offers = prices.offers(session, now=now)
        loans = credit.loans_of(session, name)
        account = ledger.account(session, name)
        rule = training.rule(session, name)
    warning = account.warning_minutes if account else _DEFAULT_WARNING
    spent = {row.user: row.spent for row in spend}
    cap = shown if isinstance(shown, CapForm) else CapForm(formdata=None)
    stall = StallForm(formdata=None, data={"on_stall": rule.on_stall})
    cap.cap_user.choices = [(user, user) for user in sorted({*members, *caps})]
    return SteerPage(
        name=name,
        rights=group_rights(viewer(), name),
        available=have.available - groupview.in_packages(have, now),
        free=free_to_spend(have),
        caps=[CapLine(user, most, spent.get(user, 0)) for user, most in sorted(caps.items())],
        offers=offers,
        loans=[_loan(loan, name, shown, loan_id, now) for loan in loans],
        cap=cap,
        package=package_form(offers, shown),
        code=shown if isinstance(shown, CodeForm) else CodeForm(formdata=None),
        lend=shown if isinstance(shown, LendForm) else LendForm(formdata=None),
        rules=shown if isinstance(shown, RulesForm) else _rules(have, warning),
        at_zero=[Choice(one.value, str(word), str(says)) for one, (word, says) in AT_ZERO.items()],
        stall=shown if isinstance(shown, StallForm) else stall,
        on_stall=[
            Choice(one.value, str(word), str(says)) for one, (word, says) in ON_STALL.items()
        ],
        stall_rule=rule,
    )


def package_form(offers: list[OfferRow], shown: MoneyForm | None = None) -> PackageForm:
    form = shown if isinstance(shown, PackageForm) else PackageForm(formdata=None)
    form.offer.choices = [(str(offer.id), offer.name) for offer in offers]
    return form


def free_to_spend(have: Balance) -> int:
    """What buys packages and can be lent: the balance alone, without what is committed."""
    balance = sum(pot.left for pot in have.pots if pot.kind == PotKind.BALANCE.value)
    return max(0, balance - have.committed)


def _loan(
    loan: LoanRow, name: str, shown: MoneyForm | None, loan_id: int | None, now: datetime
) -> LoanLine:
    taken = loan.borrower == name
    form = None
    if taken and loan.owed:
        again = isinstance(shown, ReturnForm) and loan.id == loan_id
        form = shown if again and isinstance(shown, ReturnForm) else ReturnForm(formdata=None)
    late = loan.due is not None and loan.due <= now and loan.owed > 0
    return LoanLine(loan, taken, loan.lender if taken else loan.borrower, form, late)


def _rules(have: Balance, warning: int) -> RulesForm:
    given = {
        "at_zero": AtZero(have.at_zero).value,
        "overdraft": typed_amount(have.overdraft),
        "warning_minutes": str(warning),
    }
    return RulesForm(formdata=None, data=given)
