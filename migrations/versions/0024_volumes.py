"""Volumes: areas, folders of groups with limits, their days, requests, prices and charges."""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    _places()
    _volumes()
    _requests()
    _money()


def _places() -> None:
    op.create_table(
        "volume_area",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("provider", sa.String(), nullable=False),
        sa.Column("limits", sa.Boolean(), nullable=False),
        sa.Column("total_bytes", sa.BigInteger(), nullable=True),
        sa.Column("free_bytes", sa.BigInteger(), nullable=True),
        sa.Column("problem", sa.String(), nullable=True),
        sa.Column("read_at", TIME, nullable=False),
        sa.Column("gone_at", TIME, nullable=True),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_volume_area")),
    )
    op.create_table(
        "volume_stranger",
        sa.Column("area", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("used_bytes", sa.BigInteger(), nullable=True),
        sa.Column("limit_bytes", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("area", "name", name=op.f("pk_volume_stranger")),
    )


def _volumes() -> None:
    op.create_table(
        "volume",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("area", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("group_name", sa.String(), nullable=False),
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("used_bytes", sa.BigInteger(), nullable=True),
        sa.Column("limit_bytes", sa.BigInteger(), nullable=True),
        sa.Column("wanted_bytes", sa.BigInteger(), nullable=True),
        sa.Column("problem", sa.String(), nullable=True),
        sa.Column("read_at", TIME, nullable=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("retired_at", TIME, nullable=True),
        sa.Column("person_id", sa.Integer(), nullable=True),
        sa.CheckConstraint(
            "state in ('making','there','retired')", name=op.f("ck_volume_state_known")
        ),
        sa.ForeignKeyConstraint(["person_id"], ["person.id"], name=op.f("fk_volume_person_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_volume")),
        sa.UniqueConstraint("area", "name", name=op.f("uq_volume_area_name")),
    )
    op.create_index(op.f("ix_volume_group_name"), "volume", ["group_name"])
    op.create_table(
        "volume_day",
        sa.Column("volume_id", sa.Integer(), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("used_bytes", sa.BigInteger(), nullable=True),
        sa.Column("limit_bytes", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["volume_id"], ["volume.id"], name=op.f("fk_volume_day_volume_id")),
        sa.PrimaryKeyConstraint("volume_id", "day", name=op.f("pk_volume_day")),
    )


def _requests() -> None:
    op.create_table(
        "volume_request",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("volume_id", sa.Integer(), nullable=False),
        sa.Column("wanted_bytes", sa.BigInteger(), nullable=True),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("person_id", sa.Integer(), nullable=True),
        sa.Column("answer", sa.Text(), nullable=False),
        sa.Column("decided_at", TIME, nullable=True),
        sa.Column("decided_by", sa.Integer(), nullable=True),
        sa.Column("before_bytes", sa.BigInteger(), nullable=True),
        sa.Column("after_bytes", sa.BigInteger(), nullable=True),
        sa.Column("tried_at", TIME, nullable=True),
        sa.Column("done_at", TIME, nullable=True),
        sa.Column("code", sa.String(), nullable=True),
        sa.CheckConstraint(
            "state in ('open','agreed','applied','refused','failed','withdrawn')",
            name=op.f("ck_volume_request_state_known"),
        ),
        sa.ForeignKeyConstraint(
            ["volume_id"], ["volume.id"], name=op.f("fk_volume_request_volume_id")
        ),
        sa.ForeignKeyConstraint(
            ["person_id"], ["person.id"], name=op.f("fk_volume_request_person_id")
        ),
        sa.ForeignKeyConstraint(
            ["decided_by"], ["person.id"], name=op.f("fk_volume_request_decided_by")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_volume_request")),
    )
    op.create_index(op.f("ix_volume_request_volume_id"), "volume_request", ["volume_id"])
    op.create_index(
        "ix_volume_request_open",
        "volume_request",
        ["volume_id"],
        unique=True,
        sqlite_where=sa.text("state in ('open','agreed')"),
        postgresql_where=sa.text("state in ('open','agreed')"),
    )


def _money() -> None:
    op.create_table(
        "volume_cap",
        sa.Column("group_name", sa.String(), nullable=False),
        sa.Column("most_bytes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("group_name", name=op.f("pk_volume_cap")),
    )
    op.create_table(
        "volume_price",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("area", sa.String(), nullable=False),
        sa.Column("per_gb_month", sa.BigInteger(), nullable=False),
        sa.Column("starts", TIME, nullable=False),
        sa.Column("set_at", TIME, nullable=False),
        sa.Column("person_id", sa.Integer(), nullable=True),
        sa.CheckConstraint("per_gb_month >= 0", name=op.f("ck_volume_price_not_negative")),
        sa.ForeignKeyConstraint(
            ["person_id"], ["person.id"], name=op.f("fk_volume_price_person_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_volume_price")),
        sa.UniqueConstraint("area", "starts", name=op.f("uq_volume_price_area_starts")),
    )
    op.create_table(
        "volume_charge",
        sa.Column("volume_id", sa.Integer(), nullable=False),
        sa.Column("month", sa.String(), nullable=False),
        sa.Column("gb_days", sa.BigInteger(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["volume_id"], ["volume.id"], name=op.f("fk_volume_charge_volume_id")
        ),
        sa.PrimaryKeyConstraint("volume_id", "month", name=op.f("pk_volume_charge")),
    )


def downgrade() -> None:
    for name in ("volume_charge", "volume_price", "volume_cap", "volume_request", "volume_day"):
        op.drop_table(name)
    for name in ("volume", "volume_stranger", "volume_area"):
        op.drop_table(name)
