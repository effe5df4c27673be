"""What the columnar history has to read again. Nothing outside `store` imports this module."""

from sqlalchemy.orm import Mapped, mapped_column

from gateway.store.models import Base


class HistoryMark(Base):
    """A run of this block was written. Added in the transaction that writes the run, taken away
    when the block's file holds it: rows are added and deleted, never updated, so that no two
    writers wait for each other."""

    __tablename__ = "history_mark"

    id: Mapped[int] = mapped_column(primary_key=True)
    block: Mapped[int]
