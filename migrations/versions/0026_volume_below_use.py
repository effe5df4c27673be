"""Whether a limit below what is used was meant goes with the request to whoever writes it."""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    meant = sa.Column("below_use", sa.Boolean(), nullable=False, server_default=sa.false())
    op.add_column("volume_request", meant)


def downgrade() -> None:
    op.drop_column("volume_request", "below_use")
