"""What Slurm said of waiting jobs, since when, and when nobody looked."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "wait_reason",
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("submit", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("since", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("reason", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name=op.f("fk_wait_reason_job_id")),
        sa.PrimaryKeyConstraint("job_id", "submit", "since", name=op.f("pk_wait_reason")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "poll_gap",
        sa.Column("cluster", sa.String(), nullable=False),
        sa.Column("since", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("until", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("cluster", "since", name=op.f("pk_poll_gap")),
    )
    _waiting_now()


def _waiting_now() -> None:
    """Polls write what changes: what those that wait already wait for is taken from their rows."""
    seconds = "cast(strftime('%s', {}) as integer)"
    if op.get_bind().dialect.name == "postgresql":
        seconds = "cast(floor(extract(epoch from {})) as bigint)"
    submit, seen = seconds.format("last_submit_time"), seconds.format("seen_at")
    op.execute(
        "insert into wait_reason (job_id, submit, since, reason)"  # noqa: S608  # our own words
        f" select id, {submit}, {seen}, reason from job where active and state = 'PENDING'"
    )


def downgrade() -> None:
    op.drop_table("poll_gap")
    op.drop_table("wait_reason")
