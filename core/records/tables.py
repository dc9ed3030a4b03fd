"""Tables of the records: what is kept of campaigns, points, attempts and run folders (§4.6, §5.3).

One schema for SQLite and PostgreSQL. Times are UTC as float Unix seconds: SQLite has no type that
keeps a zone, and a number sorts, subtracts and prints the same on both. The migrations create the
tables and the triggers that refuse changes of what is final; this module must equal their result.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    Dialect,
    Double,
    Enum,
    ForeignKey,
    Index,
    MetaData,
    String,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship
from sqlalchemy.types import TypeDecorator

from core.status import AttemptState

#: Names of constraints and indexes: a later migration has to name what it changes.
NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}


class Wish(StrEnum):
    """What its user asks of the run of a campaign."""

    PAUSE = "pause"  # before the next point, until the wish is taken back
    CANCEL = "cancel"  # now, as Ctrl-C does


class Phase(StrEnum):
    """What an attempt is for."""

    MEASURE = "measure"
    PILOT = "pilot"  # a short run ahead of a point, for its rate; never a measurement


def storable(value: str) -> str:
    """Text as both databases take it: a byte that is not UTF-8, or NUL, becomes its escape.

    Findings and log tails of a broken run may hold such bytes and still go on record.
    """
    return value.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")


def escaped(name: str) -> str:
    """A file name as both databases take it; `unescaped` gives the very name back."""
    return re.sub(r"[\\\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", name)


def unescaped(text: str) -> str:
    """The file name that was escaped."""
    return re.sub(r"\\u([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), text)


class StorableText(TypeDecorator[str]):
    """Text that never fails to be stored."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Escape what the databases refuse."""
        return None if value is None else storable(value)


class FileName(TypeDecorator[str]):
    """A file name, exactly: it may hold bytes that are not UTF-8 (PEP 383 surrogates in Python)."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Name → text."""
        return None if value is None else escaped(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        """Text → name."""
        return None if value is None else unescaped(value)


class DecimalText(TypeDecorator[int]):
    """An integer as decimal text: published seeds exceed 2**63, the largest SQL integer."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: int | None, dialect: Dialect) -> str | None:
        """Integer → digits."""
        return None if value is None else str(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> int | None:
        """Digits → integer."""
        return None if value is None else int(value)


class Base(DeclarativeBase):
    """Common to all tables: names of constraints, and column types by Python type."""

    metadata = MetaData(naming_convention=NAMING)
    type_annotation_map = {  # noqa: RUF012 - read by SQLAlchemy when the class is made
        str: StorableText(),
        float: Double(),
        AttemptState: Enum(
            AttemptState,
            native_enum=False,
            length=16,
            values_callable=lambda states: [state.value for state in states],
        ),
        dict[str, Any]: JSON(none_as_null=True),
        list[dict[str, Any]]: JSON(none_as_null=True),
    }


class SeedSetRow(Base):
    """A seed set as a campaign was bound to it; two registries may publish one name differently."""

    __tablename__ = "seed_set"
    __table_args__ = (
        UniqueConstraint(
            "name",
            "scheduler_rng_seed",
            "sample_index_rng_seed",
            "model_seed",
            "cohorts",
            name="uq_seed_set",
        ),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    scheduler_rng_seed: Mapped[int] = mapped_column(DecimalText)
    sample_index_rng_seed: Mapped[int] = mapped_column(DecimalText)
    model_seed: Mapped[int] = mapped_column(DecimalText)
    cohorts: Mapped[str]  # the adoption window, separated by commas; empty: not published


class CampaignRow(Base):
    """One curve: the exact YAML that its user gave, and the plan that followed."""

    __tablename__ = "campaign"
    __table_args__ = (
        CheckConstraint("rehearsal = (time_scale IS NOT NULL)", name="rehearsal_has_scale"),
        CheckConstraint("wish IN ('pause', 'cancel')", name="wish"),
        Index(None, "system", "id"),  # the newest of a system
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    text: Mapped[str]
    text_sha256: Mapped[str] = mapped_column(String(64))
    statement: Mapped[dict[str, Any]]  # what the YAML states, variables filled in
    system: Mapped[str]  # campaigns of one system share their rates
    source: Mapped[str]  # path of the YAML file
    runs_folder: Mapped[str]  # folders of attempts and runs are relative to it
    created_at: Mapped[float]
    rehearsal: Mapped[bool]
    time_scale: Mapped[float | None]
    plan: Mapped[dict[str, Any]]
    c_max: Mapped[int]
    c_min: Mapped[int]
    seed_set_id: Mapped[int] = mapped_column(ForeignKey("seed_set.id"))
    flow_run_id: Mapped[str | None]
    wish: Mapped[str | None] = mapped_column(String(16))  # what a running flow is asked to do
    baseline: Mapped[int]  # from 1; raised by each rebase: only its attempts are of this curve

    seed_set: Mapped[SeedSetRow] = relationship(lazy="joined", innerjoin=True)


class PointRow(Base):
    """A planned point; its state follows from its attempts and is not stored."""

    __tablename__ = "point"
    __table_args__ = (UniqueConstraint("campaign_id", "label"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    campaign_id: Mapped[int] = mapped_column(ForeignKey("campaign.id"))
    label: Mapped[str]
    position: Mapped[int]  # in run order, from 0
    concurrency: Mapped[int]
    region: Mapped[str]
    role: Mapped[str]
    accuracy: Mapped[bool]
    load_pattern: Mapped[str]
    min_duration_ms: Mapped[int] = mapped_column(BigInteger)
    skipped: Mapped[str | None]  # why the last run left it out; None: it didn't

    campaign: Mapped[CampaignRow] = relationship()
    attempts: Mapped[list[AttemptRow]] = relationship(
        back_populates="point", order_by="AttemptRow.id"
    )


class AttemptRow(Base):
    """One try at a point; never changed again once its state is final, and never deleted."""

    __tablename__ = "attempt"
    __table_args__ = (
        UniqueConstraint("point_id", "phase", "number"),
        CheckConstraint("number >= 1", name="number"),
        CheckConstraint("phase IN ('measure', 'pilot')", name="phase"),
        CheckConstraint(
            "state IN ('prepared', 'running', 'valid', 'invalid', 'failed', 'interrupted')",
            name="state",
        ),
        Index(
            "uq_attempt_valid",
            "point_id",
            "phase",
            "baseline",
            unique=True,
            sqlite_where=text("state = 'valid'"),
            postgresql_where=text("state = 'valid'"),
        ),
        Index(
            "uq_attempt_open",
            "point_id",
            unique=True,
            sqlite_where=text("state IN ('prepared', 'running')"),
            postgresql_where=text("state IN ('prepared', 'running')"),
        ),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    point_id: Mapped[int] = mapped_column(ForeignKey("point.id"))
    number: Mapped[int]  # from 1, within the point
    phase: Mapped[str] = mapped_column(String(16))
    baseline: Mapped[int]  # the campaign's when the attempt began
    state: Mapped[AttemptState]
    folder: Mapped[str]  # relative to the campaign's runs folder
    planned_samples: Mapped[int | None] = mapped_column(BigInteger)
    planned_passes: Mapped[int | None]
    created_at: Mapped[float]
    started_at: Mapped[float | None]
    ended_at: Mapped[float | None]
    exit_code: Mapped[int | None]
    ended_by: Mapped[str | None]
    findings: Mapped[list[dict[str, Any]] | None]
    metrics: Mapped[dict[str, Any] | None]
    reason: Mapped[str | None]
    host: Mapped[str]  # owner: the process that is responsible for the attempt
    boot_id: Mapped[str]
    pid: Mapped[int]
    start_time: Mapped[int] = mapped_column(BigInteger)
    client_version: Mapped[str | None]

    point: Mapped[PointRow] = relationship(back_populates="attempts")
    run_folder: Mapped[RunFolderRow | None] = relationship(lazy="joined")


class RunFolderRow(Base):
    """What the client left of an attempt, as it was when it was recorded."""

    __tablename__ = "run_folder"

    id: Mapped[int] = mapped_column(primary_key=True)
    attempt_id: Mapped[int] = mapped_column(ForeignKey("attempt.id"), unique=True)
    path: Mapped[str]  # relative to the campaign's runs folder, or absolute if outside
    recorded_at: Mapped[float]
    total_bytes: Mapped[int] = mapped_column(BigInteger)
    manifest_sha256: Mapped[str] = mapped_column(String(64))


class RunFileRow(Base):
    """One file of a run folder's manifest; written once."""

    __tablename__ = "run_file"
    __table_args__ = (
        CheckConstraint("size_bytes >= 0", name="size_bytes"),
        CheckConstraint("length(sha256) = 64", name="sha256"),
    )

    run_folder_id: Mapped[int] = mapped_column(ForeignKey("run_folder.id"), primary_key=True)
    name: Mapped[str] = mapped_column(FileName, primary_key=True)  # relative
    size_bytes: Mapped[int] = mapped_column(BigInteger)
    sha256: Mapped[str] = mapped_column(String(64))


class FingerprintRow(Base):
    """The system at one moment of an attempt; written once."""

    __tablename__ = "fingerprint"
    __table_args__ = (
        CheckConstraint("moment IN ('before', 'after')", name="moment"),
        CheckConstraint("length(sha256) = 64", name="sha256"),
    )

    attempt_id: Mapped[int] = mapped_column(ForeignKey("attempt.id"), primary_key=True)
    moment: Mapped[str] = mapped_column(String(16), primary_key=True)
    at: Mapped[float]
    sha256: Mapped[str] = mapped_column(String(64))
    content: Mapped[dict[str, Any]]  # version, parts and their digests

    attempt: Mapped[AttemptRow] = relationship()


class LeaseRow(Base):
    """Who measures an instance, across all machines that share the records."""

    __tablename__ = "lease"

    instance: Mapped[str] = mapped_column(primary_key=True)
    campaign: Mapped[str]
    label: Mapped[str | None]  # the point under way
    since: Mapped[float]
    beat: Mapped[int] = mapped_column(BigInteger)  # raised while the holder lives
    client_until: Mapped[float | None]  # a client may run until then; None: none does
    host: Mapped[str]
    boot_id: Mapped[str]
    pid: Mapped[int]
    start_time: Mapped[int] = mapped_column(BigInteger)


class EventRow(Base):
    """One line of the append-only event log."""

    __tablename__ = "event"
    __table_args__ = (Index(None, "campaign_id", "id"), Index(None, "attempt_id"))

    id: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[float]
    campaign_id: Mapped[int] = mapped_column(ForeignKey("campaign.id"))
    attempt_id: Mapped[int | None] = mapped_column(ForeignKey("attempt.id"))
    kind: Mapped[str]
    payload: Mapped[dict[str, Any]]
