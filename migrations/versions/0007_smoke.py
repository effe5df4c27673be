"""Smoke jobs, what is sent after them, and the newest runs of a QoS without a look at all."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_WAITS = sa.text("after_id is not null")
_SMOKE = sa.text("purpose is not null")


def upgrade() -> None:
    op.add_column("job", sa.Column("purpose", sa.String(), nullable=True))
    op.add_column("submission", sa.Column("purpose", sa.String(), nullable=True))
    op.add_column("submission", sa.Column("after_id", sa.Integer(), nullable=True))
    op.create_index(
        "ix_submission_after_id",
        "submission",
        ["after_id"],
        unique=False,
        sqlite_where=_WAITS,
        postgresql_where=_WAITS,
    )
    op.create_index(
        "ix_job_purpose_end_time",
        "job",
        ["end_time"],
        unique=False,
        sqlite_where=_SMOKE,
        postgresql_where=_SMOKE,
    )
    op.create_index("ix_run_qos_end_time", "run", ["qos", "end_time"], unique=False)


def downgrade() -> None:
    op.drop_index("ix_run_qos_end_time", table_name="run")
    op.drop_index("ix_job_purpose_end_time", table_name="job")
    op.drop_index("ix_submission_after_id", table_name="submission")
    op.drop_column("submission", "after_id")
    op.drop_column("submission", "purpose")
    op.drop_column("job", "purpose")
