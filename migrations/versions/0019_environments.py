"""Environments that were published, what is known of them, the portal's own jobs and checks."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "environment",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("group_name", sa.String(), nullable=False),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("changed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("person_id", sa.Integer(), nullable=False),
        sa.Column("retired_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["person_id"], ["person.id"], name=op.f("fk_environment_person_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_environment")),
        sa.UniqueConstraint("name", name=op.f("uq_environment_name")),
    )
    op.create_table(
        "environment_facts",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("person_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["person_id"], ["person.id"], name=op.f("fk_environment_facts_person_id")
        ),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_environment_facts")),
    )
    _site_jobs()
    _checks()


def _site_jobs() -> None:
    op.create_table(
        "site_job",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("form_key", sa.String(), nullable=False),
        sa.Column("person_id", sa.Integer(), nullable=False),
        sa.Column("submission_id", sa.Integer(), nullable=True),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("code", sa.String(), nullable=True),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.Column("result", sa.JSON(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "state in ('open','done','failed')", name=op.f("ck_site_job_state_known")
        ),
        sa.ForeignKeyConstraint(["person_id"], ["person.id"], name=op.f("fk_site_job_person_id")),
        sa.ForeignKeyConstraint(
            ["submission_id"], ["submission.id"], name=op.f("fk_site_job_submission_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_site_job")),
        sa.UniqueConstraint("person_id", "form_key", name=op.f("uq_site_job_person_id_form_key")),
        sa.UniqueConstraint("submission_id", name=op.f("uq_site_job_submission_id")),
    )
    op.create_index(
        "ix_site_job_open",
        "site_job",
        ["kind", "subject"],
        unique=True,
        sqlite_where=sa.text("state = 'open'"),
        postgresql_where=sa.text("state = 'open'"),
    )
    op.create_index(
        op.f("ix_site_job_kind_subject_created_at"), "site_job", ["kind", "subject", "created_at"]
    )


def _checks() -> None:
    op.create_table(
        "environment_check",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("environment", sa.String(), nullable=False),
        sa.Column("gpu_type", sa.String(), nullable=False),
        sa.Column("site_job_id", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ok", sa.Boolean(), nullable=False),
        sa.Column("code", sa.String(), nullable=True),
        sa.Column("fingerprint", sa.String(), nullable=False),
        sa.Column("driver", sa.String(), nullable=False),
        sa.Column("capability", sa.String(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("found", sa.JSON(), nullable=False),
        sa.Column("steps", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["site_job_id"], ["site_job.id"], name=op.f("fk_environment_check_site_job_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_environment_check")),
        sa.UniqueConstraint("site_job_id", name=op.f("uq_environment_check_site_job_id")),
    )
    op.create_index(
        op.f("ix_environment_check_environment_gpu_type_at"),
        "environment_check",
        ["environment", "gpu_type", "at"],
    )


def downgrade() -> None:
    op.drop_table("environment_check")
    op.drop_table("site_job")
    op.drop_table("environment_facts")
    op.drop_table("environment")
