"""What training runs tell of themselves, and what a group wants done about a stall."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_STARTED = sa.text("token is not null and start_time is not null")
_NAMED = sa.text("run is not null")


def upgrade() -> None:
    op.add_column("submission", sa.Column("run", sa.String(), nullable=True))
    op.create_index(
        "ix_submission_person_id_run",
        "submission",
        ["person_id", "run"],
        unique=False,
        sqlite_where=_NAMED,
        postgresql_where=_NAMED,
    )
    op.create_index(
        "ix_job_started_token",
        "job",
        ["active", "end_time"],
        unique=False,
        sqlite_where=_STARTED,
        postgresql_where=_STARTED,
    )
    _reading()
    _told()
    op.create_table(
        "group_rule",
        sa.Column("group_name", sa.String(), nullable=False),
        sa.Column("on_stall", sa.String(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("person_id", sa.Integer(), nullable=True),
        sa.CheckConstraint(
            "on_stall in ('nothing','hold','requeue')", name=op.f("ck_group_rule_on_stall_known")
        ),
        sa.ForeignKeyConstraint(["person_id"], ["person.id"], name=op.f("fk_group_rule_person_id")),
        sa.PrimaryKeyConstraint("group_name", name=op.f("pk_group_rule")),
    )


def _reading() -> None:
    op.create_table(
        "training_follow",
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("quiet", sa.Integer(), nullable=False),
        sa.Column("turn", sa.Integer(), nullable=False),
        sa.Column("metrics_from", sa.Double(), nullable=True),
        sa.Column("heard_at", sa.DateTime(timezone=True), nullable=True),
        *_of_job("training_follow"),
    )
    op.create_index("ix_training_follow_due_at", "training_follow", ["due_at"], unique=False)
    op.create_table(
        "training_cursor",
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("file", sa.String(), nullable=False),
        sa.Column("offset", sa.BigInteger(), nullable=False),
        sa.Column("last_at", sa.Double(), nullable=True),
        sa.Column("floor_at", sa.Double(), nullable=True),
        *_of_job("training_cursor", "file"),
    )


def _told() -> None:
    op.create_table(
        "training_event",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("restart", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=True),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name=op.f("fk_training_event_job_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_training_event")),
    )
    op.create_index("ix_training_event_job_id_at", "training_event", ["job_id", "at"])
    floats, wholes = (
        ("first_at", "last_at", "loss", "seconds"),
        ("lines", "first_step", "last_step", "losses", "tokens", "samples", "timed", "peak_bytes"),
    )
    op.create_table(
        "training_point",
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("restart", sa.Integer(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        *(sa.Column(name, sa.Double(), nullable=False) for name in floats),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in wholes),
        *_of_job("training_point", "restart", "at"),
    )
    op.create_table(
        "training_minute",
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("node", sa.String(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("last_at", sa.Double(), nullable=False),
        sa.Column("procs", sa.BigInteger(), nullable=True),
        sa.Column("expected", sa.BigInteger(), nullable=True),
        sa.Column("util", sa.Double(), nullable=True),
        sa.Column("util_low", sa.Double(), nullable=True),
        sa.Column("util_high", sa.Double(), nullable=True),
        sa.Column("mem", sa.BigInteger(), nullable=True),
        sa.Column("cards", sa.JSON(), nullable=False),
        *_of_job("training_minute", "node", "at"),
    )
    sums = ["job_id", "at", "util", "util_low", "util_high", "mem"]
    op.create_index("ix_training_minute_sums", "training_minute", sums, unique=False)


def _of_job(table: str, *more: str) -> tuple[sa.Constraint, ...]:
    """The key of a table whose rows belong to a job."""
    return (
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name=op.f(f"fk_{table}_job_id")),
        sa.PrimaryKeyConstraint("job_id", *more, name=op.f(f"pk_{table}")),
    )


def downgrade() -> None:
    for name in (
        "group_rule",
        "training_minute",
        "training_point",
        "training_event",
        "training_cursor",
        "training_follow",
    ):
        op.drop_table(name)
    op.drop_index("ix_job_started_token", table_name="job")
    op.drop_index("ix_submission_person_id_run", table_name="submission")
    op.drop_column("submission", "run")
