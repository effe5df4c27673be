"""Forecasts of starts: as they were made, with what came of them, and the newest of each job."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

_OPEN = sa.text("started_at is null and left_at is null")
_UNLINKED = sa.text("job_id is null")


def upgrade() -> None:
    op.create_table(
        "start_forecast",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("job_id", sa.Integer(), nullable=True),
        sa.Column("submission_id", sa.Integer(), nullable=True),
        sa.Column("made_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("moment", sa.String(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("p50_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("p90_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("partition", sa.String(), nullable=False),
        sa.Column("group_name", sa.String(), nullable=False),
        sa.Column("qos", sa.String(), nullable=True),
        sa.Column("gpus", sa.Integer(), nullable=False),
        sa.Column("gpu_type", sa.String(), nullable=True),
        sa.Column("limit_minutes", sa.Integer(), nullable=True),
        sa.Column("jobs", sa.Integer(), nullable=False),
        sa.Column("model", sa.String(), nullable=True),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("left_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "moment in ('submit','waiting')", name=op.f("ck_start_forecast_moment_known")
        ),
        sa.CheckConstraint(
            "source in ('slurm','history')", name=op.f("ck_start_forecast_source_known")
        ),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name=op.f("fk_start_forecast_job_id")),
        sa.ForeignKeyConstraint(
            ["submission_id"], ["submission.id"], name=op.f("fk_start_forecast_submission_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_start_forecast")),
    )
    for columns in (
        ["job_id"],
        ["made_at"],
        ["moment", "made_at"],
        ["moment", "source", "partition", "made_at"],
    ):
        op.create_index(op.f("ix_start_forecast_" + "_".join(columns)), "start_forecast", columns)
    for name, column, where in (
        ("ix_start_forecast_open", "job_id", _OPEN),
        ("ix_start_forecast_unlinked", "submission_id", _UNLINKED),
    ):
        op.create_index(
            name, "start_forecast", [column], sqlite_where=where, postgresql_where=where
        )
    op.create_table(
        "forecast_now",
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("made_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("p50_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("p90_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("jobs", sa.Integer(), nullable=False),
        sa.Column("why", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name=op.f("fk_forecast_now_job_id")),
        sa.PrimaryKeyConstraint("job_id", "source", name=op.f("pk_forecast_now")),
    )


def downgrade() -> None:
    op.drop_table("forecast_now")
    op.drop_table("start_forecast")
