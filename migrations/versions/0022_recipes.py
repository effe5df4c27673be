"""Recipes, what is searched of them, what was made from them, and what submissions were made of."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "submission_parts",
        sa.Column("submission_id", sa.Integer(), nullable=False),
        sa.Column("template", sa.String(), nullable=False),
        sa.Column("environment", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["submission_id"], ["submission.id"], name=op.f("fk_submission_parts_submission_id")
        ),
        sa.PrimaryKeyConstraint("submission_id", name=op.f("pk_submission_parts")),
    )
    _recipe()
    op.create_table(
        "recipe_label",
        sa.Column("recipe_id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["recipe_id"], ["recipe.id"], name=op.f("fk_recipe_label_recipe_id")
        ),
        sa.PrimaryKeyConstraint("recipe_id", "kind", "name", name=op.f("pk_recipe_label")),
    )
    op.create_index(
        op.f("ix_recipe_label_kind_name_recipe_id"), "recipe_label", ["kind", "name", "recipe_id"]
    )
    _rerun()
    if op.get_bind().dialect.name == "sqlite":
        op.execute(
            "CREATE VIRTUAL TABLE recipe_words USING fts5"
            "(words, tokenize='unicode61 remove_diacritics 0')"
        )
        return
    op.execute("CREATE TABLE recipe_words (recipe_id integer PRIMARY KEY, words tsvector NOT NULL)")
    op.execute("CREATE INDEX ix_recipe_words_words ON recipe_words USING gin (words)")


def _recipe() -> None:
    op.create_table(
        "recipe",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("fingerprint", sa.String(), nullable=False),
        sa.Column("person_id", sa.Integer(), nullable=False),
        sa.Column("visibility", sa.String(), nullable=False),
        sa.Column("group_name", sa.String(), nullable=True),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("title", sa.String(), nullable=False),
        sa.Column("template", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("gpus", sa.Integer(), nullable=False),
        sa.Column("gpu_type", sa.String(), nullable=False),
        sa.Column("cost", sa.BigInteger(), nullable=True),
        sa.Column("elsewhere", sa.Boolean(), nullable=False),
        sa.Column("parent_id", sa.Integer(), nullable=True),
        sa.Column("job_id", sa.Integer(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("retracted_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "visibility in ('me','group','site')", name=op.f("ck_recipe_visibility_known")
        ),
        sa.ForeignKeyConstraint(["person_id"], ["person.id"], name=op.f("fk_recipe_person_id")),
        sa.ForeignKeyConstraint(["parent_id"], ["recipe.id"], name=op.f("fk_recipe_parent_id")),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name=op.f("fk_recipe_job_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_recipe")),
        sa.UniqueConstraint(
            "person_id", "fingerprint", name=op.f("uq_recipe_person_id_fingerprint")
        ),
    )
    keys = (["fingerprint"], ["parent_id"], ["job_id"], ["retracted_at", "created_at"])
    for columns in keys:
        op.create_index(op.f("ix_recipe_" + "_".join(columns)), "recipe", columns)


def _rerun() -> None:
    op.create_table(
        "recipe_rerun",
        sa.Column("submission_id", sa.Integer(), nullable=False),
        sa.Column("recipe_id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("changed", sa.Boolean(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("within", sa.Integer(), nullable=True),
        sa.Column("match", sa.JSON(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("kind in ('rerun','clone')", name=op.f("ck_recipe_rerun_kind_known")),
        sa.CheckConstraint(
            "state in ('waiting','done','failed')", name=op.f("ck_recipe_rerun_state_known")
        ),
        sa.ForeignKeyConstraint(
            ["submission_id"], ["submission.id"], name=op.f("fk_recipe_rerun_submission_id")
        ),
        sa.ForeignKeyConstraint(
            ["recipe_id"], ["recipe.id"], name=op.f("fk_recipe_rerun_recipe_id")
        ),
        sa.PrimaryKeyConstraint("submission_id", name=op.f("pk_recipe_rerun")),
    )
    for columns in (["recipe_id", "state"], ["state"]):
        op.create_index(op.f("ix_recipe_rerun_" + "_".join(columns)), "recipe_rerun", columns)


def downgrade() -> None:
    op.drop_table("recipe_words")
    for name in ("recipe_rerun", "recipe_label", "recipe", "submission_parts"):
        op.drop_table(name)
