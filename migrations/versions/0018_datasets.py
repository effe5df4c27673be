"""The catalogue of datasets: entries, versions, who may use them, requests, checks, uses."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "dataset",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("title", sa.String(), nullable=False),
        sa.Column("licence", sa.String(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("visibility", sa.String(), nullable=False),
        sa.Column("group_name", sa.String(), nullable=True),
        sa.Column("owner_id", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "visibility in ('everyone','listed','groups')", name=op.f("ck_dataset_visibility_known")
        ),
        sa.ForeignKeyConstraint(["owner_id"], ["person.id"], name=op.f("fk_dataset_owner_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_dataset")),
        sa.UniqueConstraint("name", name=op.f("uq_dataset_name")),
    )
    op.create_table(
        "dataset_reader",
        sa.Column("dataset_id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.CheckConstraint("kind in ('group','person')", name=op.f("ck_dataset_reader_kind_known")),
        sa.ForeignKeyConstraint(
            ["dataset_id"], ["dataset.id"], name=op.f("fk_dataset_reader_dataset_id")
        ),
        sa.PrimaryKeyConstraint("dataset_id", "kind", "name", name=op.f("pk_dataset_reader")),
    )
    op.create_table(
        "dataset_request",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("dataset_id", sa.Integer(), nullable=True),
        sa.Column("person_id", sa.Integer(), nullable=False),
        sa.Column("group_name", sa.String(), nullable=True),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("answer", sa.Text(), nullable=False),
        sa.Column("decided_by", sa.Integer(), nullable=True),
        sa.Column("decided_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("kind in ('access','new')", name=op.f("ck_dataset_request_kind_known")),
        sa.CheckConstraint(
            "state in ('open','granted','refused')", name=op.f("ck_dataset_request_state_known")
        ),
        sa.ForeignKeyConstraint(
            ["dataset_id"], ["dataset.id"], name=op.f("fk_dataset_request_dataset_id")
        ),
        sa.ForeignKeyConstraint(
            ["decided_by"], ["person.id"], name=op.f("fk_dataset_request_decided_by")
        ),
        sa.ForeignKeyConstraint(
            ["person_id"], ["person.id"], name=op.f("fk_dataset_request_person_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_dataset_request")),
    )
    op.create_index(op.f("ix_dataset_request_state"), "dataset_request", ["state"], unique=False)
    op.create_table(
        "dataset_version",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("dataset_id", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=True),
        sa.Column("files", sa.BigInteger(), nullable=True),
        sa.Column("manifest", sa.String(), nullable=True),
        sa.Column("manifest_path", sa.Text(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("parent_id", sa.Integer(), nullable=True),
        sa.Column("made_by", sa.Text(), nullable=False),
        sa.Column("created_by", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("decided_by", sa.Integer(), nullable=True),
        sa.Column("published_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("withdrawn_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("withdrawn_why", sa.Text(), nullable=False),
        sa.Column("health", sa.String(), nullable=False),
        sa.Column("checked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("read_mbps", sa.Double(), nullable=True),
        sa.CheckConstraint(
            "health in ('unknown','good','damaged','failed')",
            name=op.f("ck_dataset_version_health_known"),
        ),
        sa.CheckConstraint(
            "state in ('draft','requested','published','withdrawn')",
            name=op.f("ck_dataset_version_state_known"),
        ),
        sa.ForeignKeyConstraint(
            ["created_by"], ["person.id"], name=op.f("fk_dataset_version_created_by")
        ),
        sa.ForeignKeyConstraint(
            ["dataset_id"], ["dataset.id"], name=op.f("fk_dataset_version_dataset_id")
        ),
        sa.ForeignKeyConstraint(
            ["decided_by"], ["person.id"], name=op.f("fk_dataset_version_decided_by")
        ),
        sa.ForeignKeyConstraint(
            ["parent_id"], ["dataset_version.id"], name=op.f("fk_dataset_version_parent_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_dataset_version")),
        sa.UniqueConstraint(
            "dataset_id", "version", name=op.f("uq_dataset_version_dataset_id_version")
        ),
    )
    op.create_table(
        "dataset_check",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("version_id", sa.Integer(), nullable=False),
        sa.Column("site_job", sa.Integer(), nullable=True),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("health", sa.String(), nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["version_id"], ["dataset_version.id"], name=op.f("fk_dataset_check_version_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_dataset_check")),
    )
    op.create_index(
        op.f("ix_dataset_check_version_id"), "dataset_check", ["version_id"], unique=False
    )
    op.create_table(
        "dataset_use",
        sa.Column("submission_id", sa.Integer(), nullable=False),
        sa.Column("version_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["submission_id"], ["submission.id"], name=op.f("fk_dataset_use_submission_id")
        ),
        sa.ForeignKeyConstraint(
            ["version_id"], ["dataset_version.id"], name=op.f("fk_dataset_use_version_id")
        ),
        sa.PrimaryKeyConstraint("submission_id", "version_id", name=op.f("pk_dataset_use")),
    )
    op.create_index(op.f("ix_dataset_use_version_id"), "dataset_use", ["version_id"], unique=False)


def downgrade() -> None:
    op.drop_index(op.f("ix_dataset_use_version_id"), table_name="dataset_use")
    op.drop_table("dataset_use")
    op.drop_index(op.f("ix_dataset_check_version_id"), table_name="dataset_check")
    op.drop_table("dataset_check")
    op.drop_table("dataset_version")
    op.drop_index(op.f("ix_dataset_request_state"), table_name="dataset_request")
    op.drop_table("dataset_request")
    op.drop_table("dataset_reader")
    op.drop_table("dataset")
