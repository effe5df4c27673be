"""The table of the preemption record. Nothing outside `store` imports this module."""

from datetime import datetime
from typing import Any

from sqlalchemy.orm import Mapped, mapped_column

from gateway.store.models import Base


class SpotRecord(Base):
    """What the runs of a QoS on one type of GPU say of preemptions, summed up by the worker once an
    hour and replaced whole. The type is empty for all of them together; `facts` are
    core.spot_record.Record."""

    __tablename__ = "spot_record"

    qos: Mapped[str] = mapped_column(primary_key=True)
    gpu_type: Mapped[str] = mapped_column(primary_key=True)
    facts: Mapped[dict[str, Any]]
    made_at: Mapped[datetime]
