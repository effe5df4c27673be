"""Code that goes with recipes, once for all that have the same."""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "recipe_code",
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("files", sa.Text(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_recipe_code")),
    )


def downgrade() -> None:
    op.drop_table("recipe_code")
