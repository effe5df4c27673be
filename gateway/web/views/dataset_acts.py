"""What is done with a version of a dataset: added, published, sent back, withdrawn, verified."""

from collections.abc import Callable

from flask.typing import ResponseReturnValue

from gateway.core.access import Permission
from gateway.errors import NotFound, Refused
from gateway.services import dataset_verify as verifying
from gateway.services import dataset_versions as versions
from gateway.services.submit import InvalidAsk
from gateway.web.access import requires, viewer
from gateway.web.dataset_forms import ActForm, VersionForm
from gateway.web.deps import deps
from gateway.web.texts import gettext
from gateway.web.views.acted import acted
from gateway.web.views.datasets import bp, page
from gateway.web.views.environments import desk


@bp.post("/<name>/versions")
@requires(Permission.USE_PORTAL)
def add_version(name: str) -> ResponseReturnValue:
    form = VersionForm()

    def act() -> str:
        number = versions.add(
            name,
            form.version(),
            created_by=viewer().person_id,
            viewer=viewer(),
            begin=deps().begin,
            now=deps().clock(),
        )
        return gettext("Version %(number)s is a draft.", number=number)

    return acted(form, act, again=lambda one: page(name, one), to="datasets.show", name=name)


@bp.post("/<name>/<int:number>/<action>")
@requires(Permission.USE_PORTAL)
def act_on(name: str, number: int, action: str) -> ResponseReturnValue:
    """One of ACTIONS."""
    if action not in ACTIONS:
        raise NotFound(f"action {action}")
    form = ActForm()
    return acted(
        form,
        lambda: ACTIONS[action](name, number, form),
        again=lambda one: page(name, one),
        to="datasets.show",
        name=name,
    )


def _publish(name: str, number: int, _form: ActForm) -> str:
    have = deps()
    state = versions.publish(
        name, number, viewer=viewer(), begin=have.begin, now=have.clock(), broker=have.broker
    )
    if state == "published":
        return gettext("Version %(number)s is published: forms offer it.", number=number)
    return gettext("Version %(number)s waits for who may publish it.", number=number)


def _send_back(name: str, number: int, _form: ActForm) -> str:
    versions.send_back(name, number, viewer=viewer(), begin=deps().begin)
    return gettext("Version %(number)s is a draft.", number=number)


def _withdraw(name: str, number: int, form: ActForm) -> str:
    have = deps()
    versions.withdraw(
        name, number, form.why.data or "", viewer=viewer(), begin=have.begin, now=have.clock()
    )
    return gettext("Version %(number)s is offered no more.", number=number)


def _verify(name: str, number: int, form: ActForm) -> str:
    _sent(verifying.start, name, number, form)
    return gettext("A job reads version %(number)s and reports here.", number=number)


def _manifest(name: str, number: int, form: ActForm) -> str:
    _sent(verifying.make_manifest, name, number, form)
    return gettext("A job of yours makes the manifest of version %(number)s.", number=number)


def _sent(start: Callable[..., int], name: str, number: int, form: ActForm) -> None:
    key = (form.key.data or "")[:64]
    try:
        start(name, number, viewer=viewer(), desk=desk(), form_key=key, now=deps().clock())
    except InvalidAsk as invalid:
        first = invalid.problems[0]
        raise Refused(first.code, field=None, **first.facts) from invalid


ACTIONS: dict[str, Callable[[str, int, ActForm], str]] = {
    "publish": _publish,
    "send-back": _send_back,
    "withdraw": _withdraw,
    "verify": _verify,
    "manifest": _manifest,
}
