"""Tables of applications: where their doors are, and who else may open them."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "app",
        sa.Column("submission_id", sa.Integer(), nullable=False),
        sa.Column("address", sa.String(), nullable=True),
        sa.Column("port", sa.Integer(), nullable=True),
        sa.Column("key", sa.String(), nullable=True),
        sa.Column("ready_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["submission_id"], ["submission.id"], name=op.f("fk_app_submission_id")
        ),
        sa.PrimaryKeyConstraint("submission_id", name=op.f("pk_app")),
    )
    op.create_table(
        "app_guest",
        sa.Column("submission_id", sa.Integer(), nullable=False),
        sa.Column("person_id", sa.Integer(), nullable=False),
        sa.Column("added_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("agreed_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["person_id"], ["person.id"], name=op.f("fk_app_guest_person_id")),
        sa.ForeignKeyConstraint(
            ["submission_id"], ["app.submission_id"], name=op.f("fk_app_guest_submission_id")
        ),
        sa.PrimaryKeyConstraint("submission_id", "person_id", name=op.f("pk_app_guest")),
    )
    op.create_index(op.f("ix_app_guest_person_id"), "app_guest", ["person_id"])


def downgrade() -> None:
    op.drop_index(op.f("ix_app_guest_person_id"), table_name="app_guest")
    op.drop_table("app_guest")
    op.drop_table("app")
