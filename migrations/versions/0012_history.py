"""Which blocks of runs the columnar history has to read again."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "history_mark",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("block", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_history_mark")),
    )


def downgrade() -> None:
    op.drop_table("history_mark")
