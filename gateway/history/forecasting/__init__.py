"""When a job will start, learned from the waits of the past (docs/engineering/forecast.md).

`rows` reads them, `features` says what was known at a moment, `trees` are the fitted quantiles,
`model` trains and answers, `backtest` asks about a past that is known.
"""
