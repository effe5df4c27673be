"""How many cards the cluster had, day by day. Nothing outside `store` imports this module."""

from datetime import date

from sqlalchemy.orm import Mapped, mapped_column

from gateway.store.models import Base


class GpuCapacityDay(Base):
    """The most cards of a type that a poll of the nodes saw on a day of the site's zone, in service
    or not."""

    __tablename__ = "gpu_capacity_day"

    day: Mapped[date] = mapped_column(primary_key=True)
    gpu_type: Mapped[str] = mapped_column(primary_key=True)
    gpus: Mapped[int]
