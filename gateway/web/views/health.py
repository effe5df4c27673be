"""For the probe of a proxy or a service manager."""

from flask import Blueprint
from flask.typing import ResponseReturnValue

bp = Blueprint("health", __name__)


@bp.get("/healthz")
def alive() -> ResponseReturnValue:
    """The web process answers. It says nothing of the database or of Slurm."""
    return "ok\n", 200, {"Content-Type": "text/plain; charset=utf-8"}
