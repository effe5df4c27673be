"""Which type of card a job asked for, beside the one that it was given."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("job", sa.Column("req_gpu_type", sa.String(), nullable=True))


def downgrade() -> None:
    op.drop_column("job", "req_gpu_type")
