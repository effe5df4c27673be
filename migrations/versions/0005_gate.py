"""What ended and is not charged yet is found without a look through all jobs."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index(
        "ix_job_uncharged",
        "job",
        ["end_time"],
        unique=False,
        sqlite_where=sa.text("not active and not accounted"),
        postgresql_where=sa.text("not active and not accounted"),
    )


def downgrade() -> None:
    op.drop_index("ix_job_uncharged", table_name="job")
