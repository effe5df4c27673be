"""No network call inside a database transaction: the unit of work sets this, the client asks."""

from contextvars import ContextVar

inside_transaction: ContextVar[bool] = ContextVar("inside_transaction", default=False)
