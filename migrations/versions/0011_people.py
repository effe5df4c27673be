"""Accounts, fair shares, priorities and reservations as Slurm has them; who shall be in a group."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_OPEN = sa.text("state = 'pending'")
_NAMED = ("account_now", "reservation_now", "priority_weights_now")
_POINTS = (
    "priority",
    "site",
    "age",
    "association",
    "fair_share",
    "job_size",
    "of_partition",
    "of_qos",
    "nice",
)


def upgrade() -> None:
    for table in _NAMED:
        op.create_table(
            table,
            sa.Column("name", sa.String(), nullable=False),
            sa.Column("facts", sa.JSON(), nullable=False),
            sa.PrimaryKeyConstraint("name", name=op.f(f"pk_{table}")),
        )
    _fair_share()
    _priority()
    _membership()


def _fair_share() -> None:
    op.create_table(
        "fair_share_now",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("account", sa.String(), nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_fair_share_now")),
    )
    op.create_index(op.f("ix_fair_share_now_account"), "fair_share_now", ["account"])


def _priority() -> None:
    op.create_table(
        "priority_now",
        sa.Column("slurm_id", sa.BigInteger(), autoincrement=False, nullable=False),
        *(
            sa.Column(name, sa.String(), nullable=False)
            for name in ("user", "account", "partition", "qos")
        ),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in _POINTS),
        sa.Column("tres", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("slurm_id", "partition", name=op.f("pk_priority_now")),
    )


def _membership() -> None:
    table = "membership_change"
    op.create_table(
        table,
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("group_name", sa.String(), nullable=False),
        sa.Column("unix_user", sa.String(), nullable=False),
        sa.Column("wanted", sa.String(), nullable=False),
        sa.Column("reopens", sa.Boolean(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("code", sa.String(), nullable=True),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("person_id", sa.Integer(), nullable=True),
        sa.Column("closed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("done_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "wanted in ('member','absent','leader','not_leader','default')",
            name=op.f(f"ck_{table}_wanted_known"),
        ),
        sa.CheckConstraint(
            "state in ('pending','done','refused','undone')", name=op.f(f"ck_{table}_state_known")
        ),
        sa.ForeignKeyConstraint(["person_id"], ["person.id"], name=op.f(f"fk_{table}_person_id")),
        sa.PrimaryKeyConstraint("id", name=op.f(f"pk_{table}")),
    )
    op.create_index(op.f(f"ix_{table}_group_name_unix_user"), table, ["group_name", "unix_user"])
    op.create_index(
        f"ix_{table}_pending", table, ["id"], sqlite_where=_OPEN, postgresql_where=_OPEN
    )


def downgrade() -> None:
    for table in ("membership_change", "priority_now", "fair_share_now", *_NAMED):
        op.drop_table(table)
