"""Metrics that jobs report under names of their own, and what of them is not kept."""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "job_metric",
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sa.Column("odd", sa.BigInteger(), nullable=False),
        sa.Column("first_at", sa.Double(), nullable=True),
        sa.Column("at", sa.Double(), nullable=True),
        sa.Column("step", sa.BigInteger(), nullable=True),
        sa.Column("last", sa.Double(), nullable=True),
        sa.Column("low", sa.Double(), nullable=True),
        sa.Column("low_step", sa.BigInteger(), nullable=True),
        sa.Column("high", sa.Double(), nullable=True),
        sa.Column("high_step", sa.BigInteger(), nullable=True),
        sa.Column("by_time", sa.JSON(), nullable=False),
        sa.Column("by_step", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name=op.f("fk_job_metric_job_id")),
        sa.PrimaryKeyConstraint("job_id", "name", name=op.f("pk_job_metric")),
    )
    op.create_table(
        "job_metric_gap",
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("skipped_bytes", sa.BigInteger(), nullable=False),
        sa.Column("names", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name=op.f("fk_job_metric_gap_job_id")),
        sa.PrimaryKeyConstraint("job_id", name=op.f("pk_job_metric_gap")),
    )


def downgrade() -> None:
    op.drop_table("job_metric_gap")
    op.drop_table("job_metric")
