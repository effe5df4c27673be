"""How many cards of each type there were on each day."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "gpu_capacity_day",
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("gpu_type", sa.String(), nullable=False),
        sa.Column("gpus", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("day", "gpu_type", name=op.f("pk_gpu_capacity_day")),
    )


def downgrade() -> None:
    op.drop_table("gpu_capacity_day")
