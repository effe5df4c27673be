"""What the cluster counts and enforces. Nothing outside `store` imports this module."""

from typing import Any

from sqlalchemy.orm import Mapped, mapped_column

from gateway.store.models import Base


class AccountingFactsNow(Base):
    """As the cluster said last; one row, replaced whole."""

    __tablename__ = "accounting_facts_now"

    name: Mapped[str] = mapped_column(primary_key=True)
    facts: Mapped[dict[str, Any]]  # wire AccountingFacts
