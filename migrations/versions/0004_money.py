"""Prices, the ledger, budgets and the gate; a run knows its group and QoS by itself."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_RUN = ("user", "group_name", "partition")


def upgrade() -> None:
    _columns_of_runs()
    _tables()


def _columns_of_runs() -> None:
    op.add_column(
        "job", sa.Column("accounted", sa.Boolean(), nullable=False, server_default=sa.false())
    )
    op.execute("update job set accounted = (not active)")
    for name in _RUN:
        op.add_column("run", sa.Column(name, sa.String(), nullable=False, server_default=""))
    op.add_column("run", sa.Column("qos", sa.String(), nullable=True))
    op.add_column("run", sa.Column("cancelled_by", sa.String(), nullable=True))
    op.add_column("run", sa.Column("seen_until", sa.DateTime(timezone=True), nullable=True))
    op.add_column(
        "run", sa.Column("to_settle", sa.Boolean(), nullable=False, server_default=sa.false())
    )
    names = (*_RUN, "qos")
    run = sa.table("run", sa.column("job_id"), *map(sa.column, names))
    job = sa.table("job", sa.column("id"), *map(sa.column, names))
    for name in names:
        of_its_job = sa.select(job.c[name]).where(job.c.id == run.c.job_id).scalar_subquery()
        op.execute(sa.update(run).values({name: of_its_job}))
    # Whether a run of before is charged is for the first price list to say.
    op.execute("update run set to_settle = (end_time is not null)")
    op.create_index(
        "ix_run_to_settle",
        "run",
        ["id"],
        unique=False,
        sqlite_where=sa.text("to_settle"),
        postgresql_where=sa.text("to_settle"),
    )

    op.create_index(
        "ix_job_template_times",
        "job",
        ["group_name", "template", "submit_time"],
        unique=False,
        sqlite_where=sa.text("template is not null and not active"),
        postgresql_where=sa.text("template is not null and not active"),
    )


def _tables() -> None:
    op.create_table(
        "account",
        sa.Column("group_name", sa.String(), nullable=False),
        sa.Column("at_zero", sa.String(), nullable=False),
        sa.Column("overdraft", sa.BigInteger(), nullable=False),
        sa.Column("warning_minutes", sa.Integer(), nullable=False),
        sa.Column("committed", sa.BigInteger(), nullable=False),
        sa.Column("committed_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "at_zero in ('finish','hold','stop')", name=op.f("ck_account_at_zero_known")
        ),
        sa.CheckConstraint("overdraft >= 0", name=op.f("ck_account_overdraft_not_negative")),
        sa.PrimaryKeyConstraint("group_name", name=op.f("pk_account")),
    )
    op.create_table(
        "gate",
        sa.Column("group_name", sa.String(), nullable=False),
        sa.Column("user", sa.String(), nullable=False),
        sa.Column("closed", sa.Boolean(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("wanted", sa.JSON(), nullable=False),
        sa.Column("before", sa.JSON(), nullable=False),
        sa.Column("in_slurm", sa.JSON(), nullable=True),
        sa.Column("changed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("confirmed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("error_code", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("group_name", "user", name=op.f("pk_gate")),
    )
    op.create_table(
        "member_cap",
        sa.Column("group_name", sa.String(), nullable=False),
        sa.Column("user", sa.String(), nullable=False),
        sa.Column("per_month", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("group_name", "user", name=op.f("pk_member_cap")),
    )
    op.create_table(
        "notice",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("group_name", sa.String(), nullable=True),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("gone_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_notice")),
        sa.UniqueConstraint("key", name=op.f("uq_notice_key")),
    )
    op.create_index(op.f("ix_notice_group_name_at"), "notice", ["group_name", "at"], unique=False)

    op.create_table(
        "budget",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("group_name", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("starts", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ends", sa.DateTime(timezone=True), nullable=False),
        sa.Column("approved_until", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("person_id", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["person_id"], ["person.id"], name=op.f("fk_budget_person_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_budget")),
    )
    op.create_index(op.f("ix_budget_group_name"), "budget", ["group_name"], unique=False)

    op.create_table(
        "campaign",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("code", sa.String(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("days", sa.Integer(), nullable=False),
        sa.Column("stock", sa.Integer(), nullable=False),
        sa.Column("taken", sa.Integer(), nullable=False),
        sa.Column("starts", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ends", sa.DateTime(timezone=True), nullable=True),
        sa.Column("person_id", sa.Integer(), nullable=True),
        sa.CheckConstraint("taken <= stock", name=op.f("ck_campaign_stock_not_exceeded")),
        sa.ForeignKeyConstraint(["person_id"], ["person.id"], name=op.f("fk_campaign_person_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_campaign")),
        sa.UniqueConstraint("code", name=op.f("uq_campaign_code")),
    )
    op.create_table(
        "closed_month",
        sa.Column("month", sa.String(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("totals", sa.JSON(), nullable=False),
        sa.Column("differences", sa.JSON(), nullable=False),
        sa.Column("person_id", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(
            ["person_id"], ["person.id"], name=op.f("fk_closed_month_person_id")
        ),
        sa.PrimaryKeyConstraint("month", name=op.f("pk_closed_month")),
    )
    op.create_table(
        "gate_held_job",
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name=op.f("fk_gate_held_job_job_id")),
        sa.PrimaryKeyConstraint("job_id", name=op.f("pk_gate_held_job")),
    )
    op.create_table(
        "package_offer",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("resource", sa.String(), nullable=False),
        sa.Column("per_hour", sa.BigInteger(), nullable=False),
        sa.Column("days", sa.Integer(), nullable=False),
        sa.Column("starts", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ends", sa.DateTime(timezone=True), nullable=True),
        sa.Column("person_id", sa.Integer(), nullable=True),
        sa.CheckConstraint("days > 0", name=op.f("ck_package_offer_days_positive")),
        sa.ForeignKeyConstraint(
            ["person_id"], ["person.id"], name=op.f("fk_package_offer_person_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_package_offer")),
        sa.UniqueConstraint("name", name=op.f("uq_package_offer_name")),
    )
    op.create_table(
        "price",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("list_name", sa.String(), nullable=False),
        sa.Column("resource", sa.String(), nullable=False),
        sa.Column("per_hour", sa.BigInteger(), nullable=False),
        sa.Column("starts", sa.DateTime(timezone=True), nullable=False),
        sa.Column("set_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("person_id", sa.Integer(), nullable=True),
        sa.CheckConstraint("per_hour >= 0", name=op.f("ck_price_per_hour_not_negative")),
        sa.ForeignKeyConstraint(["person_id"], ["person.id"], name=op.f("fk_price_person_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_price")),
        sa.UniqueConstraint(
            "list_name", "resource", "starts", name=op.f("uq_price_list_name_resource_starts")
        ),
    )
    op.create_table(
        "qos_terms",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("qos", sa.String(), nullable=False),
        sa.Column("factor_millionths", sa.BigInteger(), nullable=False),
        sa.Column("preempted", sa.String(), nullable=False),
        sa.Column("starts", sa.DateTime(timezone=True), nullable=False),
        sa.Column("set_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("person_id", sa.Integer(), nullable=True),
        sa.CheckConstraint(
            "preempted in ('pay','free')", name=op.f("ck_qos_terms_preempted_known")
        ),
        sa.CheckConstraint("factor_millionths >= 0", name=op.f("ck_qos_terms_factor_not_negative")),
        sa.ForeignKeyConstraint(["person_id"], ["person.id"], name=op.f("fk_qos_terms_person_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_qos_terms")),
        sa.UniqueConstraint("qos", "starts", name=op.f("uq_qos_terms_qos_starts")),
    )
    op.create_table(
        "budget_line",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("budget_id", sa.Integer(), nullable=False),
        sa.Column("category", sa.String(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("person_id", sa.Integer(), nullable=True),
        sa.CheckConstraint(
            "category in ('card_hours','storage','data_work','other')",
            name=op.f("ck_budget_line_category_known"),
        ),
        sa.CheckConstraint("amount <> 0", name=op.f("ck_budget_line_amount_not_zero")),
        sa.ForeignKeyConstraint(
            ["budget_id"], ["budget.id"], name=op.f("fk_budget_line_budget_id")
        ),
        sa.ForeignKeyConstraint(
            ["person_id"], ["person.id"], name=op.f("fk_budget_line_person_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_budget_line")),
    )
    op.create_index(op.f("ix_budget_line_budget_id"), "budget_line", ["budget_id"], unique=False)

    op.create_table(
        "budget_threshold",
        sa.Column("budget_id", sa.Integer(), nullable=False),
        sa.Column("percent", sa.Integer(), nullable=False),
        sa.Column("action", sa.String(), nullable=False),
        sa.Column("reached_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "action in ('notify','stop','approve')", name=op.f("ck_budget_threshold_action_known")
        ),
        sa.ForeignKeyConstraint(
            ["budget_id"], ["budget.id"], name=op.f("fk_budget_threshold_budget_id")
        ),
        sa.PrimaryKeyConstraint("budget_id", "percent", name=op.f("pk_budget_threshold")),
    )
    op.create_table(
        "charge",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("group_name", sa.String(), nullable=False),
        sa.Column("user", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("card_seconds", sa.BigInteger(), nullable=False),
        sa.Column("items", sa.JSON(), nullable=False),
        sa.Column("pending", sa.BigInteger(), nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("decision", sa.JSON(), nullable=True),
        sa.Column("decided_by", sa.Integer(), nullable=True),
        sa.CheckConstraint(
            "state = 'posted' or amount = 0", name=op.f("ck_charge_only_posted_costs")
        ),
        sa.CheckConstraint(
            "state in ('posted','review','waived')", name=op.f("ck_charge_state_known")
        ),
        sa.ForeignKeyConstraint(["decided_by"], ["person.id"], name=op.f("fk_charge_decided_by")),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_charge_run_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_charge")),
        sa.UniqueConstraint("run_id", name=op.f("uq_charge_run_id")),
    )
    op.create_index(op.f("ix_charge_group_name_at"), "charge", ["group_name", "at"], unique=False)
    op.create_index(op.f("ix_charge_state_at"), "charge", ["state", "at"], unique=False)

    op.create_table(
        "hold",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("submission_id", sa.Integer(), nullable=False),
        sa.Column("group_name", sa.String(), nullable=False),
        sa.Column("user", sa.String(), nullable=False),
        sa.Column("tasks", sa.Integer(), nullable=False),
        sa.Column("per_task", sa.BigInteger(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("opened_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("closed_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("amount >= 0", name=op.f("ck_hold_amount_not_negative")),
        sa.ForeignKeyConstraint(
            ["submission_id"], ["submission.id"], name=op.f("fk_hold_submission_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_hold")),
        sa.UniqueConstraint("submission_id", name=op.f("uq_hold_submission_id")),
    )
    op.create_index(op.f("ix_hold_closed_at"), "hold", ["closed_at"], unique=False)
    op.create_index(
        op.f("ix_hold_group_name_closed_at"), "hold", ["group_name", "closed_at"], unique=False
    )

    op.create_table(
        "pot",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("group_name", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("resource", sa.String(), nullable=True),
        sa.Column("per_hour", sa.BigInteger(), nullable=True),
        sa.Column("starts", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=True),
        sa.Column("carry_over_millionths", sa.Integer(), nullable=False),
        sa.Column("left", sa.BigInteger(), nullable=False),
        sa.Column("campaign_id", sa.Integer(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("person_id", sa.Integer(), nullable=True),
        sa.CheckConstraint(
            "kind in ('balance','grant','package','loan')", name=op.f("ck_pot_kind_known")
        ),
        sa.ForeignKeyConstraint(["campaign_id"], ["campaign.id"], name=op.f("fk_pot_campaign_id")),
        sa.ForeignKeyConstraint(["person_id"], ["person.id"], name=op.f("fk_pot_person_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_pot")),
        sa.UniqueConstraint("key", name=op.f("uq_pot_key")),
    )
    op.create_index(op.f("ix_pot_expires"), "pot", ["expires"], unique=False)
    op.create_index(op.f("ix_pot_group_name"), "pot", ["group_name"], unique=False)

    op.create_table(
        "entry",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("pot_id", sa.Integer(), nullable=False),
        sa.Column("group_name", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("hold_id", sa.Integer(), nullable=True),
        sa.Column("charge_id", sa.Integer(), nullable=True),
        sa.Column("person_id", sa.Integer(), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        sa.CheckConstraint("amount <> 0", name=op.f("ck_entry_amount_not_zero")),
        sa.ForeignKeyConstraint(["charge_id"], ["charge.id"], name=op.f("fk_entry_charge_id")),
        sa.ForeignKeyConstraint(["hold_id"], ["hold.id"], name=op.f("fk_entry_hold_id")),
        sa.ForeignKeyConstraint(["person_id"], ["person.id"], name=op.f("fk_entry_person_id")),
        sa.ForeignKeyConstraint(["pot_id"], ["pot.id"], name=op.f("fk_entry_pot_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_entry")),
        sa.UniqueConstraint("key", "pot_id", name=op.f("uq_entry_key_pot_id")),
    )
    op.create_index(op.f("ix_entry_charge_id"), "entry", ["charge_id"], unique=False)
    op.create_index(op.f("ix_entry_group_name_at"), "entry", ["group_name", "at"], unique=False)
    op.create_index(op.f("ix_entry_hold_id"), "entry", ["hold_id"], unique=False)
    op.create_index(op.f("ix_entry_pot_id"), "entry", ["pot_id"], unique=False)

    op.create_table(
        "loan",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("lender", sa.String(), nullable=False),
        sa.Column("borrower", sa.String(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("returned", sa.BigInteger(), nullable=False),
        sa.Column("pot_id", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("due", sa.DateTime(timezone=True), nullable=True),
        sa.Column("person_id", sa.Integer(), nullable=True),
        sa.CheckConstraint("returned <= amount", name=op.f("ck_loan_not_more_than_lent")),
        sa.ForeignKeyConstraint(["person_id"], ["person.id"], name=op.f("fk_loan_person_id")),
        sa.ForeignKeyConstraint(["pot_id"], ["pot.id"], name=op.f("fk_loan_pot_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_loan")),
        sa.UniqueConstraint("key", name=op.f("uq_loan_key")),
    )
    op.create_index(op.f("ix_loan_borrower"), "loan", ["borrower"], unique=False)
    op.create_index(op.f("ix_loan_lender"), "loan", ["lender"], unique=False)

    op.create_table(
        "refund",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("charge_id", sa.Integer(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("evidence", sa.JSON(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("person_id", sa.Integer(), nullable=True),
        sa.Column("undone_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("undone_by", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["charge_id"], ["charge.id"], name=op.f("fk_refund_charge_id")),
        sa.ForeignKeyConstraint(["person_id"], ["person.id"], name=op.f("fk_refund_person_id")),
        sa.ForeignKeyConstraint(["undone_by"], ["person.id"], name=op.f("fk_refund_undone_by")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_refund")),
        sa.UniqueConstraint("charge_id", name=op.f("uq_refund_charge_id")),
    )


def downgrade() -> None:
    op.drop_index("ix_job_template_times", table_name="job")
    op.drop_index("ix_run_to_settle", table_name="run")
    for name in ("to_settle", "seen_until", "cancelled_by", "qos", *_RUN):
        op.drop_column("run", name)
    op.drop_column("job", "accounted")
    op.drop_table("refund")
    op.drop_index(op.f("ix_loan_lender"), table_name="loan")
    op.drop_index(op.f("ix_loan_borrower"), table_name="loan")

    op.drop_table("loan")
    op.drop_index(op.f("ix_entry_pot_id"), table_name="entry")
    op.drop_index(op.f("ix_entry_hold_id"), table_name="entry")
    op.drop_index(op.f("ix_entry_group_name_at"), table_name="entry")
    op.drop_index(op.f("ix_entry_charge_id"), table_name="entry")

    op.drop_table("entry")
    op.drop_index(op.f("ix_pot_group_name"), table_name="pot")
    op.drop_index(op.f("ix_pot_expires"), table_name="pot")

    op.drop_table("pot")
    op.drop_index(op.f("ix_hold_group_name_closed_at"), table_name="hold")
    op.drop_index(op.f("ix_hold_closed_at"), table_name="hold")

    op.drop_table("hold")
    op.drop_index(op.f("ix_charge_state_at"), table_name="charge")
    op.drop_index(op.f("ix_charge_group_name_at"), table_name="charge")

    op.drop_table("charge")
    op.drop_table("budget_threshold")
    op.drop_index(op.f("ix_budget_line_budget_id"), table_name="budget_line")

    op.drop_table("budget_line")
    op.drop_table("qos_terms")
    op.drop_table("price")
    op.drop_table("package_offer")
    op.drop_table("gate_held_job")
    op.drop_table("closed_month")
    op.drop_table("campaign")
    op.drop_index(op.f("ix_budget_group_name"), table_name="budget")

    op.drop_table("budget")
    op.drop_index(op.f("ix_notice_group_name_at"), table_name="notice")

    op.drop_table("notice")
    op.drop_table("member_cap")
    op.drop_table("gate")
    op.drop_table("account")
