"""Version 0001: campaigns, points, attempts, run folders, fingerprints, leases, seed sets, events.

The triggers refuse changes of what is final, whoever asks: the event log, manifests and
fingerprints are append-only, an attempt whose state is final is never updated, and no attempt is
ever deleted.
"""

import sqlalchemy as sa
from alembic import op
from alembic.util import CommandError

revision = "0001"
down_revision = None

#: Table, change that is refused, reason; an attempt's update is refused once its state is final.
GUARDS = [
    ("event", "UPDATE", "the event log is append-only"),
    ("event", "DELETE", "the event log is append-only"),
    ("run_file", "UPDATE", "a recorded manifest is never changed"),
    ("run_file", "DELETE", "a recorded manifest is never changed"),
    ("fingerprint", "UPDATE", "a recorded fingerprint is never changed"),
    ("fingerprint", "DELETE", "a recorded fingerprint is never changed"),
    ("attempt", "UPDATE", "an attempt with a final state is never changed"),
    ("attempt", "DELETE", "attempts are never deleted"),
]
FINAL = "OLD.state NOT IN ('prepared', 'running')"


def upgrade() -> None:
    """Create the tables, then what guards them."""
    _create_seed_set()
    _create_campaign()
    _create_point()
    _create_attempt()
    _create_run_folder()
    _create_fingerprint()
    _create_lease()
    _create_event()
    if op.get_bind().dialect.name == "sqlite":
        _guard_sqlite()
    else:
        _guard_postgresql()


def downgrade() -> None:
    """Not supported: it would delete records."""
    raise CommandError("records are never downgraded; restore a backup of the database")


def _create_seed_set() -> None:
    seeds = ["scheduler_rng_seed", "sample_index_rng_seed", "model_seed"]
    op.create_table(
        "seed_set",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        *(sa.Column(seed, sa.Text(), nullable=False) for seed in seeds),
        sa.Column("cohorts", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_seed_set"),
        sa.UniqueConstraint("name", *seeds, "cohorts", name="uq_seed_set"),
    )


def _create_campaign() -> None:
    op.create_table(
        "campaign",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("text_sha256", sa.String(64), nullable=False),
        sa.Column("statement", sa.JSON(), nullable=False),
        sa.Column("system", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("runs_folder", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("rehearsal", sa.Boolean(), nullable=False),
        sa.Column("time_scale", sa.Double()),
        sa.Column("plan", sa.JSON(), nullable=False),
        sa.Column("c_max", sa.Integer(), nullable=False),
        sa.Column("c_min", sa.Integer(), nullable=False),
        sa.Column("seed_set_id", sa.Integer(), nullable=False),
        sa.Column("flow_run_id", sa.Text()),
        sa.Column("wish", sa.String(16)),
        sa.Column("baseline", sa.Integer(), nullable=False),
        sa.CheckConstraint(
            "rehearsal = (time_scale IS NOT NULL)", name=op.f("ck_campaign_rehearsal_has_scale")
        ),
        sa.CheckConstraint("wish IN ('pause', 'cancel')", name=op.f("ck_campaign_wish")),
        sa.ForeignKeyConstraint(["seed_set_id"], ["seed_set.id"], name="fk_campaign_seed_set_id"),
        sa.PrimaryKeyConstraint("id", name="pk_campaign"),
        sa.UniqueConstraint("name", name="uq_campaign_name"),
    )
    op.create_index("ix_campaign_system_id", "campaign", ["system", "id"])


def _create_point() -> None:
    op.create_table(
        "point",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("campaign_id", sa.Integer(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("concurrency", sa.Integer(), nullable=False),
        sa.Column("region", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("accuracy", sa.Boolean(), nullable=False),
        sa.Column("load_pattern", sa.Text(), nullable=False),
        sa.Column("min_duration_ms", sa.BigInteger(), nullable=False),
        sa.Column("skipped", sa.Text()),
        sa.ForeignKeyConstraint(["campaign_id"], ["campaign.id"], name="fk_point_campaign_id"),
        sa.PrimaryKeyConstraint("id", name="pk_point"),
        sa.UniqueConstraint("campaign_id", "label", name="uq_point_campaign_id_label"),
    )


def _create_attempt() -> None:
    op.create_table(
        "attempt",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("point_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("phase", sa.String(16), nullable=False),
        sa.Column("baseline", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("folder", sa.Text(), nullable=False),
        sa.Column("planned_samples", sa.BigInteger()),
        sa.Column("planned_passes", sa.Integer()),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("started_at", sa.Double()),
        sa.Column("ended_at", sa.Double()),
        sa.Column("exit_code", sa.Integer()),
        sa.Column("ended_by", sa.Text()),
        sa.Column("findings", sa.JSON()),
        sa.Column("metrics", sa.JSON()),
        sa.Column("reason", sa.Text()),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("boot_id", sa.Text(), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("start_time", sa.BigInteger(), nullable=False),
        sa.Column("client_version", sa.Text()),
        sa.CheckConstraint("number >= 1", name=op.f("ck_attempt_number")),
        sa.CheckConstraint("phase IN ('measure', 'pilot')", name=op.f("ck_attempt_phase")),
        sa.CheckConstraint(
            "state IN ('prepared', 'running', 'valid', 'invalid', 'failed', 'interrupted')",
            name=op.f("ck_attempt_state"),
        ),
        sa.ForeignKeyConstraint(["point_id"], ["point.id"], name="fk_attempt_point_id"),
        sa.PrimaryKeyConstraint("id", name="pk_attempt"),
        sa.UniqueConstraint("point_id", "phase", "number", name="uq_attempt_point_id_phase_number"),
    )
    _create_partial_index("uq_attempt_open", ["point_id"], "state IN ('prepared', 'running')")
    _create_partial_index("uq_attempt_valid", ["point_id", "phase", "baseline"], "state = 'valid'")


def _create_partial_index(name: str, columns: list[str], where: str) -> None:
    op.create_index(
        name,
        "attempt",
        columns,
        unique=True,
        sqlite_where=sa.text(where),
        postgresql_where=sa.text(where),
    )


def _create_run_folder() -> None:
    op.create_table(
        "run_folder",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("attempt_id", sa.Integer(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("recorded_at", sa.Double(), nullable=False),
        sa.Column("total_bytes", sa.BigInteger(), nullable=False),
        sa.Column("manifest_sha256", sa.String(64), nullable=False),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempt.id"], name="fk_run_folder_attempt_id"),
        sa.PrimaryKeyConstraint("id", name="pk_run_folder"),
        sa.UniqueConstraint("attempt_id", name="uq_run_folder_attempt_id"),
    )
    op.create_table(
        "run_file",
        sa.Column("run_folder_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.CheckConstraint("size_bytes >= 0", name=op.f("ck_run_file_size_bytes")),
        sa.CheckConstraint("length(sha256) = 64", name=op.f("ck_run_file_sha256")),
        sa.ForeignKeyConstraint(
            ["run_folder_id"], ["run_folder.id"], name="fk_run_file_run_folder_id"
        ),
        sa.PrimaryKeyConstraint("run_folder_id", "name", name="pk_run_file"),
    )


def _create_fingerprint() -> None:
    op.create_table(
        "fingerprint",
        sa.Column("attempt_id", sa.Integer(), nullable=False),
        sa.Column("moment", sa.String(16), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("content", sa.JSON(), nullable=False),
        sa.CheckConstraint("moment IN ('before', 'after')", name=op.f("ck_fingerprint_moment")),
        sa.CheckConstraint("length(sha256) = 64", name=op.f("ck_fingerprint_sha256")),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempt.id"], name="fk_fingerprint_attempt_id"),
        sa.PrimaryKeyConstraint("attempt_id", "moment", name="pk_fingerprint"),
    )


def _create_lease() -> None:
    op.create_table(
        "lease",
        sa.Column("instance", sa.Text(), nullable=False),
        sa.Column("campaign", sa.Text(), nullable=False),
        sa.Column("label", sa.Text()),
        sa.Column("since", sa.Double(), nullable=False),
        sa.Column("beat", sa.BigInteger(), nullable=False),
        sa.Column("client_until", sa.Double()),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("boot_id", sa.Text(), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("start_time", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("instance", name="pk_lease"),
    )


def _create_event() -> None:
    op.create_table(
        "event",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("campaign_id", sa.Integer(), nullable=False),
        sa.Column("attempt_id", sa.Integer()),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("payload", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempt.id"], name="fk_event_attempt_id"),
        sa.ForeignKeyConstraint(["campaign_id"], ["campaign.id"], name="fk_event_campaign_id"),
        sa.PrimaryKeyConstraint("id", name="pk_event"),
    )
    op.create_index("ix_event_campaign_id_id", "event", ["campaign_id", "id"])
    op.create_index("ix_event_attempt_id", "event", ["attempt_id"])


def _guard_sqlite() -> None:
    for table, change, reason in GUARDS:
        when = f"WHEN {FINAL}" if (table, change) == ("attempt", "UPDATE") else ""
        op.execute(
            f"CREATE TRIGGER guard_{table}_{change.lower()} BEFORE {change} ON {table} {when}"
            f" BEGIN SELECT RAISE(ABORT, '{reason}'); END"
        )


def _guard_postgresql() -> None:
    op.execute(
        "CREATE FUNCTION pareto_refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'restrict_violation'; END $$"
    )
    for table, change, reason in GUARDS:
        when = f"WHEN ({FINAL})" if (table, change) == ("attempt", "UPDATE") else ""
        op.execute(
            f"CREATE TRIGGER guard_{table}_{change.lower()} BEFORE {change} ON {table}"
            f" FOR EACH ROW {when} EXECUTE FUNCTION pareto_refuse('{reason}')"
        )
    for table in ("event", "run_file", "fingerprint", "attempt"):
        op.execute(
            f"CREATE TRIGGER guard_{table}_truncate BEFORE TRUNCATE ON {table}"
            f" EXECUTE FUNCTION pareto_refuse('{table} is never emptied')"
        )
