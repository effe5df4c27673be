"""The end of each act by a form: told at its field, or done and said."""

from collections.abc import Callable
from typing import TypeVar

from flask import flash, redirect, url_for
from flask.typing import ResponseReturnValue

from gateway.errors import Refused
from gateway.web.money_forms import MoneyForm

AnyForm = TypeVar("AnyForm", bound=MoneyForm)


def acted(
    form: AnyForm,
    act: Callable[[], str],
    *,
    again: Callable[[AnyForm], str],
    to: str,
    **place: str | int,
) -> ResponseReturnValue:
    """Do it and say what is so now on the page `to`; a refusal is told on the page `again`, with
    everything that was typed."""
    if not form.validate():
        return again(form), 422
    try:
        text = act()
    except Refused as refusal:
        form.refused(refusal)
        return again(form), 422
    flash(text, "good")
    return redirect(url_for(to, **place), code=303)  # type: ignore[arg-type]
