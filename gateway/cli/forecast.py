"""`sluice forecast`: when jobs will start, and how good what was said has been."""

import click

from gateway.cli.forecast_backtest import backtest


@click.group()
def forecast() -> None:
    """When jobs will start, and how good such forecasts have been."""


forecast.add_command(backtest)
