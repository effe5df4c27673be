"""How points and amounts of contribution look: both are millionths."""

from markupsafe import Markup

from gateway.core.credits import MILLION, format_credits
from gateway.web.views.admin_contribution import bp

_TENTH = MILLION // 10


@bp.app_template_filter("points")
def points(value: int | None) -> Markup | str:
    """To a tenth, rounded down; the exact number is in the title. Empty for None."""
    if value is None:
        return ""
    tenths = abs(value) // _TENTH
    sign = "−" if value < 0 and tenths else ""
    shown = f"{sign}{tenths // 10:,}.{tenths % 10}"
    if value % _TENTH == 0:
        return shown
    return Markup('<data value="{0}" title="{0}">{1}</data>').format(format_credits(value), shown)


@bp.app_template_filter("quantity")
def quantity(value: int) -> str:
    """An amount of a kind, exactly, without zeros at its end: 3, 12,000, 0.25."""
    return format_credits(value).rstrip("0").removesuffix(".")


@bp.app_template_filter("percent")
def percent(fraction: float) -> str:
    """To a tenth below ten: 3.4 %, 31 %."""
    value = fraction * 100
    shown = f"{value:.1f}" if 0 < value < 10 else f"{value:.0f}"
    return f"{shown} %"
