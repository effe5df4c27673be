"""What the cluster counts and enforces, as it said last."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "accounting_facts_now",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_accounting_facts_now")),
    )


def downgrade() -> None:
    op.drop_table("accounting_facts_now")
