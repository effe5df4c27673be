"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "association_now",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("user", sa.String(), nullable=False),
        sa.Column("account", sa.String(), nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_association_now")),
    )
    op.create_index(
        op.f("ix_association_now_account"), "association_now", ["account"], unique=False
    )
    op.create_index(op.f("ix_association_now_user"), "association_now", ["user"], unique=False)
    op.create_table(
        "held_row",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("cluster", sa.String(), nullable=False),
        sa.Column("fingerprint", sa.String(), nullable=False),
        sa.Column("raw", sa.Text(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("first_seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("settled_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_held_row")),
        sa.UniqueConstraint("fingerprint", name=op.f("uq_held_row_fingerprint")),
    )
    op.create_table(
        "job",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("cluster", sa.String(), nullable=False),
        sa.Column("slurm_id", sa.BigInteger(), nullable=False),
        sa.Column("array_job_id", sa.BigInteger(), nullable=True),
        sa.Column("array_task", sa.Integer(), nullable=True),
        sa.Column("array_tasks", sa.Integer(), nullable=True),
        sa.Column("user", sa.String(), nullable=False),
        sa.Column("uid", sa.BigInteger(), nullable=True),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("group_name", sa.String(), nullable=False),
        sa.Column("partition", sa.String(), nullable=False),
        sa.Column("qos", sa.String(), nullable=True),
        sa.Column("template", sa.String(), nullable=True),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("submit_time", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_submit_time", sa.DateTime(timezone=True), nullable=False),
        sa.Column("eligible_time", sa.DateTime(timezone=True), nullable=True),
        sa.Column("start_time", sa.DateTime(timezone=True), nullable=True),
        sa.Column("end_time", sa.DateTime(timezone=True), nullable=True),
        sa.Column("estimated_start", sa.DateTime(timezone=True), nullable=True),
        sa.Column("time_limit_minutes", sa.Integer(), nullable=True),
        sa.Column("nodes", sa.Integer(), nullable=False),
        sa.Column("cpus", sa.Integer(), nullable=False),
        sa.Column("gpus", sa.Integer(), nullable=False),
        sa.Column("gpu_type", sa.String(), nullable=True),
        sa.Column("node_list", sa.Text(), nullable=True),
        sa.Column("priority", sa.BigInteger(), nullable=True),
        sa.Column("restarts", sa.Integer(), nullable=False),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("exit_signal", sa.Integer(), nullable=True),
        sa.Column("working_directory", sa.Text(), nullable=False),
        sa.Column("output", sa.Text(), nullable=True),
        sa.Column("token", sa.String(), nullable=True),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_job")),
        sa.UniqueConstraint(
            "slurm_id", "cluster", "submit_time", name=op.f("uq_job_slurm_id_cluster_submit_time")
        ),
    )
    op.create_index(op.f("ix_job_active_slurm_id"), "job", ["active", "slurm_id"], unique=False)
    op.create_index(op.f("ix_job_array_job_id"), "job", ["array_job_id"], unique=False)
    op.create_index(
        op.f("ix_job_group_name_state_submit_time"),
        "job",
        ["group_name", "state", "submit_time"],
        unique=False,
    )
    op.create_index(
        op.f("ix_job_group_name_submit_time"), "job", ["group_name", "submit_time"], unique=False
    )
    op.create_index(
        op.f("ix_job_name_submit_time"),
        "job",
        ["name", "submit_time"],
        unique=False,
        postgresql_ops={"name": "text_pattern_ops"},
    )
    op.create_index(
        op.f("ix_job_partition_submit_time"), "job", ["partition", "submit_time"], unique=False
    )
    op.create_index(op.f("ix_job_qos_submit_time"), "job", ["qos", "submit_time"], unique=False)
    op.create_index(op.f("ix_job_state_submit_time"), "job", ["state", "submit_time"], unique=False)
    op.create_index(op.f("ix_job_submit_time"), "job", ["submit_time"], unique=False)
    op.create_index(
        op.f("ix_job_template_submit_time"), "job", ["template", "submit_time"], unique=False
    )
    op.create_index(op.f("ix_job_token"), "job", ["token"], unique=False)
    op.create_index(
        op.f("ix_job_user_state_submit_time"), "job", ["user", "state", "submit_time"], unique=False
    )
    op.create_index(op.f("ix_job_user_submit_time"), "job", ["user", "submit_time"], unique=False)
    op.create_table(
        "lease",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("holder", sa.String(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_lease")),
    )
    op.create_table(
        "node_now",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_node_now")),
    )
    op.create_table(
        "partition_now",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_partition_now")),
    )
    op.create_table(
        "person",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("login", sa.String(), nullable=False),
        sa.Column("unix_user", sa.String(), nullable=False),
        sa.Column("display_name", sa.String(), nullable=False),
        sa.Column("password_hash", sa.String(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("locale", sa.String(), nullable=True),
        sa.Column("timezone", sa.String(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("disabled_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_person")),
        sa.UniqueConstraint("login", name=op.f("uq_person_login")),
        sa.UniqueConstraint("unix_user", name=op.f("uq_person_unix_user")),
    )
    op.create_table(
        "poll",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("tried_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("succeeded_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("error_code", sa.String(), nullable=True),
        sa.Column("interval_seconds", sa.Double(), nullable=True),
        sa.Column("watermark", sa.DateTime(timezone=True), nullable=True),
        sa.Column("wanted_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_poll")),
    )
    op.create_table(
        "qos_now",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_qos_now")),
    )
    op.create_table(
        "queue_now",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("partition", sa.String(), nullable=False),
        sa.Column("gpu_type", sa.String(), nullable=True),
        sa.Column("group_name", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("jobs", sa.Integer(), nullable=False),
        sa.Column("gpus", sa.Integer(), nullable=False),
        sa.Column("oldest_eligible", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_queue_now")),
    )
    op.create_table(
        "sign_in_failure",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sign_in_failure")),
    )
    op.create_index(op.f("ix_sign_in_failure_at"), "sign_in_failure", ["at"], unique=False)
    op.create_index(
        op.f("ix_sign_in_failure_key_at"), "sign_in_failure", ["key", "at"], unique=False
    )
    op.create_table(
        "run",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("cluster", sa.String(), nullable=False),
        sa.Column("slurm_id", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("submit_time", sa.DateTime(timezone=True), nullable=False),
        sa.Column("eligible_time", sa.DateTime(timezone=True), nullable=True),
        sa.Column("start_time", sa.DateTime(timezone=True), nullable=False),
        sa.Column("end_time", sa.DateTime(timezone=True), nullable=True),
        sa.Column("elapsed_seconds", sa.Integer(), nullable=False),
        sa.Column("suspended_seconds", sa.Integer(), nullable=False),
        sa.Column("nodes", sa.Integer(), nullable=False),
        sa.Column("cpus", sa.Integer(), nullable=False),
        sa.Column("gpus", sa.Integer(), nullable=True),
        sa.Column("alloc_tres", sa.Text(), nullable=False),
        sa.Column("node_list", sa.Text(), nullable=True),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("exit_signal", sa.Integer(), nullable=True),
        sa.Column("restarts", sa.Integer(), nullable=False),
        sa.CheckConstraint("elapsed_seconds >= 0", name=op.f("ck_run_elapsed_not_negative")),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name=op.f("fk_run_job_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_run")),
        sa.UniqueConstraint(
            "cluster", "slurm_id", "submit_time", name=op.f("uq_run_cluster_slurm_id_submit_time")
        ),
    )
    op.create_index(op.f("ix_run_job_id"), "run", ["job_id"], unique=False)
    op.create_table(
        "sign_in",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("person_id", sa.Integer(), nullable=False),
        sa.Column("token_hash", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("address", sa.String(), nullable=False),
        sa.Column("agent", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["person_id"], ["person.id"], name=op.f("fk_sign_in_person_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sign_in")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_sign_in_token_hash")),
    )
    op.create_index(op.f("ix_sign_in_person_id"), "sign_in", ["person_id"], unique=False)
    op.create_table(
        "submission",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("token", sa.String(), nullable=False),
        sa.Column("form_key", sa.String(), nullable=False),
        sa.Column("person_id", sa.Integer(), nullable=False),
        sa.Column("cluster", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("template", sa.String(), nullable=False),
        sa.Column("ask", sa.JSON(), nullable=False),
        sa.Column("request", sa.JSON(), nullable=False),
        sa.Column("script", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_attempt_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("claimed_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("sent_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("error_code", sa.String(), nullable=True),
        sa.Column("error_text", sa.Text(), nullable=True),
        sa.Column("job_id", sa.Integer(), nullable=True),
        sa.CheckConstraint(
            "state in ('queued','sending','unknown','accepted','refused','withdrawn')",
            name=op.f("ck_submission_state_known"),
        ),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name=op.f("fk_submission_job_id")),
        sa.ForeignKeyConstraint(["person_id"], ["person.id"], name=op.f("fk_submission_person_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_submission")),
        sa.UniqueConstraint("person_id", "form_key", name=op.f("uq_submission_person_id_form_key")),
        sa.UniqueConstraint("token", name=op.f("uq_submission_token")),
    )
    op.create_index(op.f("ix_submission_job_id"), "submission", ["job_id"], unique=False)
    op.create_index(
        op.f("ix_submission_person_id_created_at"),
        "submission",
        ["person_id", "created_at"],
        unique=False,
    )
    op.create_index(
        op.f("ix_submission_state_next_attempt_at"),
        "submission",
        ["state", "next_attempt_at"],
        unique=False,
    )
    op.create_table(
        "event",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("person_id", sa.Integer(), nullable=True),
        sa.Column("job_id", sa.Integer(), nullable=True),
        sa.Column("submission_id", sa.Integer(), nullable=True),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("detail", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name=op.f("fk_event_job_id")),
        sa.ForeignKeyConstraint(["person_id"], ["person.id"], name=op.f("fk_event_person_id")),
        sa.ForeignKeyConstraint(
            ["submission_id"], ["submission.id"], name=op.f("fk_event_submission_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_event")),
    )
    op.create_index(op.f("ix_event_job_id_at"), "event", ["job_id", "at"], unique=False)
    op.create_index(
        op.f("ix_event_submission_id_at"), "event", ["submission_id", "at"], unique=False
    )


def downgrade() -> None:
    op.drop_index(op.f("ix_event_submission_id_at"), table_name="event")
    op.drop_index(op.f("ix_event_job_id_at"), table_name="event")
    op.drop_table("event")
    op.drop_index(op.f("ix_submission_state_next_attempt_at"), table_name="submission")
    op.drop_index(op.f("ix_submission_person_id_created_at"), table_name="submission")
    op.drop_index(op.f("ix_submission_job_id"), table_name="submission")
    op.drop_table("submission")
    op.drop_index(op.f("ix_sign_in_person_id"), table_name="sign_in")
    op.drop_table("sign_in")
    op.drop_index(op.f("ix_run_job_id"), table_name="run")
    op.drop_table("run")
    op.drop_index(op.f("ix_sign_in_failure_key_at"), table_name="sign_in_failure")
    op.drop_index(op.f("ix_sign_in_failure_at"), table_name="sign_in_failure")
    op.drop_table("sign_in_failure")
    op.drop_table("queue_now")
    op.drop_table("qos_now")
    op.drop_table("poll")
    op.drop_table("person")
    op.drop_table("partition_now")
    op.drop_table("node_now")
    op.drop_table("lease")
    op.drop_index(op.f("ix_job_user_submit_time"), table_name="job")
    op.drop_index(op.f("ix_job_user_state_submit_time"), table_name="job")
    op.drop_index(op.f("ix_job_token"), table_name="job")
    op.drop_index(op.f("ix_job_template_submit_time"), table_name="job")
    op.drop_index(op.f("ix_job_submit_time"), table_name="job")
    op.drop_index(op.f("ix_job_state_submit_time"), table_name="job")
    op.drop_index(op.f("ix_job_qos_submit_time"), table_name="job")
    op.drop_index(op.f("ix_job_partition_submit_time"), table_name="job")
    op.drop_index(op.f("ix_job_name_submit_time"), table_name="job")
    op.drop_index(op.f("ix_job_group_name_submit_time"), table_name="job")
    op.drop_index(op.f("ix_job_group_name_state_submit_time"), table_name="job")
    op.drop_index(op.f("ix_job_array_job_id"), table_name="job")
    op.drop_index(op.f("ix_job_active_slurm_id"), table_name="job")
    op.drop_table("job")
    op.drop_table("held_row")
    op.drop_index(op.f("ix_association_now_user"), table_name="association_now")
    op.drop_index(op.f("ix_association_now_account"), table_name="association_now")
    op.drop_table("association_now")
