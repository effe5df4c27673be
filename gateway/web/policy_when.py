"""The form for a change that holds only for a time."""

from datetime import datetime

from wtforms.validators import Optional

from gateway.web.deps import deps
from gateway.web.formbase import at_most, said
from gateway.web.i18n import zone
from gateway.web.money_forms import MomentField, MoneyForm
from gateway.web.texts import lazy_gettext as _l


class WhenForm(MoneyForm):
    """Both in the reader's zone; empty: at once, and for good."""

    starts_at = MomentField(said(_l("From")), [Optional(), at_most(40)])
    ends_at = MomentField(said(_l("Until")), [Optional(), at_most(40)])

    @classmethod
    def of(cls, starts_at: datetime | None, ends_at: datetime | None) -> "WhenForm":
        return cls(formdata=None, data={"starts_at": _typed(starts_at), "ends_at": _typed(ends_at)})


def _typed(at: datetime | None) -> str:
    if at is None:
        return ""
    return at.astimezone(zone(deps().settings.timezone)).strftime("%Y-%m-%dT%H:%M")
