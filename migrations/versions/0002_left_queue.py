"""When an open job went from the queue: such jobs are asked of accounting."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("job", sa.Column("left_queue_at", sa.DateTime(timezone=True), nullable=True))
    op.create_index(op.f("ix_job_left_queue_at"), "job", ["left_queue_at"], unique=False)


def downgrade() -> None:
    op.drop_index(op.f("ix_job_left_queue_at"), table_name="job")
    op.drop_column("job", "left_queue_at")
