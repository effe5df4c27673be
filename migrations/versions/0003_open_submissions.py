"""Find a person's open submissions without a look at all the ended ones."""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

NAME = "ix_submission_person_id_state_created_at"


def upgrade() -> None:
    op.create_index(NAME, "submission", ["person_id", "state", "created_at"], unique=False)


def downgrade() -> None:
    op.drop_index(NAME, table_name="submission")
