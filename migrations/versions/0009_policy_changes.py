"""Changes of policy as proposals, their items, and the versions of each QoS and group's policy."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_KIND = "kind in ('qos','group')"
_ENDS = sa.text("ends_at is not null")
_SENT = sa.text("state = 'sent'")


def upgrade() -> None:
    _change()
    _item()
    _versions()


def _time(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=True)


def _number(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.Integer(), nullable=True)


def _refers(table: str, column: str, to: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [f"{to}.id"], name=op.f(f"fk_{table}_{column}"))


def _change() -> None:
    table = "policy_change"
    op.create_table(
        table,
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        _number("person_id"),
        sa.Column("proposed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("needs_approval", sa.Boolean(), nullable=False),
        _number("approved_by"),
        *(_time(name) for name in ("approved_at", "starts_at", "ends_at")),
        _number("applied_by"),
        *(_time(name) for name in ("begun_at", "settled_at")),
        _number("withdrawn_by"),
        _time("withdrawn_at"),
        _number("about_id"),
        _time("claimed_until"),
        sa.CheckConstraint(
            "state in ('proposed','approved','applying','unknown','applied','partly','refused',"
            "'withdrawn','ended')",
            name=op.f("ck_policy_change_state_known"),
        ),
        *(
            _refers(table, column, "person")
            for column in ("person_id", "approved_by", "applied_by", "withdrawn_by")
        ),
        _refers(table, "about_id", table),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_policy_change")),
        sa.UniqueConstraint("key", name=op.f("uq_policy_change_key")),
    )
    op.create_index("ix_policy_change_state_starts_at", table, ["state", "starts_at"])
    op.create_index(
        "ix_policy_change_ends_at",
        table,
        ["ends_at"],
        sqlite_where=_ENDS,
        postgresql_where=_ENDS,
    )


def _item() -> None:
    table = "policy_item"
    op.create_table(
        table,
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("change_id", sa.Integer(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("before", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("after", sa.JSON(), nullable=False),
        sa.Column("retires", sa.Boolean(), nullable=True),
        sa.Column("state", sa.String(), nullable=False),
        _time("sent_at"),
        sa.Column("tries", sa.Integer(), nullable=False),
        _time("settled_at"),
        sa.Column("code", sa.String(), nullable=True),
        sa.Column("found", sa.JSON(none_as_null=True), nullable=True),
        sa.CheckConstraint(_KIND, name=op.f("ck_policy_item_kind_known")),
        sa.CheckConstraint(
            "state in ('waiting','sent','done','half','refused')",
            name=op.f("ck_policy_item_state_known"),
        ),
        _refers(table, "change_id", "policy_change"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_policy_item")),
        sa.UniqueConstraint("change_id", "place", name=op.f("uq_policy_item_change_id_place")),
        sa.UniqueConstraint(
            "change_id", "kind", "name", name=op.f("uq_policy_item_change_id_kind_name")
        ),
    )
    op.create_index("ix_policy_item_kind_name_change_id", table, ["kind", "name", "change_id"])
    op.create_index(
        "ix_policy_item_sent", table, ["change_id"], sqlite_where=_SENT, postgresql_where=_SENT
    )


def _versions() -> None:
    table = "policy_version"
    op.create_table(
        table,
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("policy", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("before", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("retired", sa.Boolean(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        _number("change_id"),
        _number("person_id"),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(_KIND, name=op.f("ck_policy_version_kind_known")),
        _refers(table, "change_id", "policy_change"),
        _refers(table, "person_id", "person"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_policy_version")),
        sa.UniqueConstraint(
            "kind", "name", "number", name=op.f("uq_policy_version_kind_name_number")
        ),
    )
    op.create_index("ix_policy_version_change_id", table, ["change_id"])
    op.create_table(
        "policy_object",
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("retired", sa.Boolean(), nullable=False),
        _number("version_id"),
        sa.CheckConstraint(_KIND, name=op.f("ck_policy_object_kind_known")),
        _refers("policy_object", "version_id", table),
        sa.PrimaryKeyConstraint("kind", "name", name=op.f("pk_policy_object")),
    )


def downgrade() -> None:
    for name in ("policy_object", "policy_version", "policy_item", "policy_change"):
        op.drop_table(name)
