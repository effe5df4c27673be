"""What the person who looks may choose, read once a request."""

from typing import cast

from flask import g

from gateway.services.environments import Environment, offered_to
from gateway.web.access import viewer
from gateway.web.deps import deps


def environments() -> tuple[Environment, ...]:
    """The one list of environments of this person: pages, forms and the API take it from here."""
    if "environments" not in g:
        have = deps()
        g.environments = offered_to(viewer(), begin=have.read, file=have.environments)
    return cast(tuple[Environment, ...], g.environments)
