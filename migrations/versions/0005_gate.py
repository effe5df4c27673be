"""What ended and is not charged, what ended in a month, and what is in doubt are found without
a look through everything."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_run_end_time", "run", ["end_time"], unique=False)
    op.create_index(
        "ix_charge_doubt",
        "charge",
        ["at"],
        unique=False,
        sqlite_where=sa.text("reason is not null"),
        postgresql_where=sa.text("reason is not null"),
    )
    op.create_index(
        "ix_job_uncharged",
        "job",
        ["end_time"],
        unique=False,
        sqlite_where=sa.text("not active and not accounted"),
        postgresql_where=sa.text("not active and not accounted"),
    )


def downgrade() -> None:
    op.drop_index("ix_charge_doubt", table_name="charge")
    op.drop_index("ix_run_end_time", table_name="run")
    op.drop_index("ix_job_uncharged", table_name="job")
