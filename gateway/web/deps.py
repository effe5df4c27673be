"""What the views need, built once in create_app and kept in the app."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from flask import current_app

from gateway.brokerclient.port import Broker
from gateway.config import Settings
from gateway.core.planner.cards import Cards
from gateway.services.environments import Environment
from gateway.services.forecaster import Forecaster
from gateway.services.templates import Catalogue
from gateway.store.uow import Begin


@dataclass(frozen=True, slots=True)
class Deps:
    """`read` never takes SQLite's write lock: pages that only look use it."""

    settings: Settings
    begin: Begin
    read: Begin
    broker: Broker
    catalogue: Catalogue
    environments: tuple[Environment, ...]
    cards: Cards
    forecaster: Forecaster
    clock: Callable[[], datetime]


def deps() -> Deps:
    """The objects of this app."""
    return cast(Deps, current_app.extensions["sluice"])
