"""What groups bring, by which rules it counts, and the runs that made shares of it."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _lines()
    op.create_table(
        "contribution_rules",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("rules", sa.JSON(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("person_id", sa.Integer(), nullable=True),
        _by("contribution_rules"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_contribution_rules")),
    )
    _runs()


def _lines() -> None:
    op.create_table(
        "contribution_line",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("replaces_id", sa.Integer(), nullable=True),
        sa.Column("group_name", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("ended_on", sa.Date(), nullable=True),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("person_id", sa.Integer(), nullable=True),
        sa.CheckConstraint("amount >= 0", name=op.f("ck_contribution_line_amount_not_negative")),
        sa.ForeignKeyConstraint(
            ["replaces_id"],
            ["contribution_line.id"],
            name=op.f("fk_contribution_line_replaces_id"),
        ),
        _by("contribution_line"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_contribution_line")),
        sa.UniqueConstraint("key", name=op.f("uq_contribution_line_key")),
        sa.UniqueConstraint("replaces_id", name=op.f("uq_contribution_line_replaces_id")),
    )
    op.create_index("ix_contribution_line_group_name", "contribution_line", ["group_name"])


def _runs() -> None:
    op.create_table(
        "contribution_run",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("done_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("groups", sa.Integer(), nullable=False),
        sa.Column("differing", sa.Integer(), nullable=False),
        sa.Column("change_id", sa.Integer(), nullable=True),
        sa.Column("error_code", sa.String(), nullable=True),
        sa.Column("person_id", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(
            ["version"], ["contribution_rules.id"], name=op.f("fk_contribution_run_version")
        ),
        _by("contribution_run"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_contribution_run")),
        sa.UniqueConstraint("key", name=op.f("uq_contribution_run_key")),
    )


def _by(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["person_id"], ["person.id"], name=op.f(f"fk_{table}_person_id"))


def downgrade() -> None:
    op.drop_table("contribution_run")
    op.drop_table("contribution_rules")
    op.drop_table("contribution_line")
