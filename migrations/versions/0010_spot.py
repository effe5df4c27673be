"""The preemption record, summed up once an hour."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "spot_record",
        sa.Column("qos", sa.String(), nullable=False),
        sa.Column("gpu_type", sa.String(), nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.Column("made_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("qos", "gpu_type", name=op.f("pk_spot_record")),
    )


def downgrade() -> None:
    op.drop_table("spot_record")
