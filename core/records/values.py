"""What the records give back: frozen plain values, free of any database session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from core.files import ManifestEntry
from core.fingerprint import Fingerprint, fingerprint_from_json
from core.records.tables import (
    AttemptRow,
    CampaignRow,
    EventRow,
    FingerprintRow,
    LeaseRow,
    Phase,
    PointRow,
    RunFileRow,
    RunFolderRow,
    SeedSetRow,
    Wish,
)
from core.retry import is_miss
from core.seeds import SeedSet
from core.status import AttemptState, PointState, point_state


@dataclass(frozen=True)
class Owner:
    """A process: the one that is responsible for an attempt. A pid alone may be reused."""

    host: str
    boot_id: str
    pid: int
    start_time: int  # clock ticks since boot


class Facts(TypedDict, total=False):
    """What may be stated about an attempt when its state changes."""

    owner: Owner
    started_at: float
    ended_at: float
    exit_code: int | None
    ended_by: str | None
    reason: str | None
    findings: Sequence[Mapping[str, Any]]
    metrics: Mapping[str, Any]
    client_version: str | None
    planned_samples: int | None
    planned_passes: int | None


@dataclass(frozen=True)
class FolderRecord:
    """A recorded run folder."""

    path: str  # relative to the campaign's runs folder, or absolute if outside
    recorded_at: float
    total_bytes: int
    manifest_sha256: str


@dataclass(frozen=True)
class AttemptRecord:
    """One try at a point."""

    id: int
    campaign: str
    label: str
    number: int
    phase: str
    baseline: int  # attempts of another than the campaign's are not of its curve
    state: AttemptState
    folder: str  # relative to the campaign's runs folder
    planned_samples: int | None
    planned_passes: int | None
    created_at: float
    started_at: float | None
    ended_at: float | None
    exit_code: int | None
    ended_by: str | None
    findings: tuple[dict[str, Any], ...]
    metrics: dict[str, Any]
    reason: str | None
    owner: Owner
    client_version: str | None
    run_folder: FolderRecord | None

    @property
    def is_pilot(self) -> bool:
        """Whether it only finds out a rate; it has no total, and is no measurement."""
        return self.phase == Phase.PILOT


@dataclass(frozen=True)
class PointRecord:
    """A planned point with its attempts in order."""

    id: int
    label: str
    position: int
    concurrency: int
    region: str
    role: str
    accuracy: bool
    load_pattern: str
    min_duration_ms: int
    skipped: str | None  # why the last run left it out
    baseline: int  # the campaign's
    attempts: tuple[AttemptRecord, ...]

    @property
    def state(self) -> PointState:
        """State of the point, derived from its attempts; a pilot is none."""
        return state_of_point([attempt.state for attempt in self.measurements], self.skipped)

    @property
    def missed_accuracy(self) -> bool:
        """Whether its last attempt missed the accuracy threshold."""
        last = self.measurements[-1:]
        return any(is_miss(attempt.findings, attempt.exit_code) for attempt in last)

    @property
    def measurements(self) -> tuple[AttemptRecord, ...]:
        """The attempts of this curve at the point itself: no pilots, none from before a rebase."""
        return tuple(
            attempt
            for attempt in self.attempts
            if not attempt.is_pilot and attempt.baseline == self.baseline
        )


def state_of_point(attempts: Sequence[AttemptState], skipped: str | None) -> PointState:
    """State of a point from the states of its measurements, and why the last run left it out."""
    state = point_state(attempts)
    return PointState.SKIPPED if state is PointState.PENDING and skipped is not None else state


@dataclass(frozen=True)
class CampaignRecord:
    """A campaign as entered."""

    id: int
    name: str
    text: str  # the exact YAML
    text_sha256: str
    source: str
    runs_folder: str
    created_at: float
    rehearsal: bool
    time_scale: float | None
    plan: dict[str, Any]
    c_max: int
    c_min: int
    seed_set: SeedSet
    flow_run_id: str | None
    wish: Wish | None  # what a running flow is asked to do
    baseline: int  # from 1; raised by each rebase


@dataclass(frozen=True)
class FingerprintRecord:
    """The system at one moment of an attempt."""

    attempt_id: int
    label: str
    number: int
    baseline: int
    state: AttemptState
    moment: str  # before or after
    at: float
    sha256: str
    content: dict[str, Any]

    @property
    def fingerprint(self) -> Fingerprint:
        """The fingerprint itself.

        Raises:
            SetupError: it is of another version.
            ParetoError: it was changed.
        """
        return fingerprint_from_json(self.content)


@dataclass(frozen=True)
class LeaseRecord:
    """Who measures an instance."""

    instance: str
    campaign: str
    label: str | None
    since: float
    beat: int
    client_until: float | None  # a client may run until then; None: none does
    owner: Owner


@dataclass(frozen=True)
class ListedCampaign:
    """A campaign in a list of many."""

    campaign: CampaignRecord
    states: tuple[PointState, ...]  # of its points, in run order
    last_at: float | None  # when its last attempt began or ended; None: it has none


@dataclass(frozen=True)
class EventRecord:
    """One line of the event log."""

    id: int
    at: float
    kind: str
    attempt_id: int | None
    payload: dict[str, Any]


def campaign_record(row: CampaignRow) -> CampaignRecord:
    """Row → value."""
    return CampaignRecord(
        id=row.id,
        name=row.name,
        text=row.text,
        text_sha256=row.text_sha256,
        source=row.source,
        runs_folder=row.runs_folder,
        created_at=row.created_at,
        rehearsal=row.rehearsal,
        time_scale=row.time_scale,
        plan=row.plan,
        c_max=row.c_max,
        c_min=row.c_min,
        seed_set=seed_set_of(row.seed_set),
        flow_run_id=row.flow_run_id,
        wish=Wish(row.wish) if row.wish else None,
        baseline=row.baseline,
    )


def seed_set_of(row: SeedSetRow) -> SeedSet:
    """Row → the official package's value."""
    return SeedSet(
        id=row.name,
        scheduler_rng_seed=row.scheduler_rng_seed,
        sample_index_rng_seed=row.sample_index_rng_seed,
        model_seed=row.model_seed,
        cohorts=tuple(row.cohorts.split(",")) if row.cohorts else (),
    )


def point_record(row: PointRow) -> PointRecord:
    """Row → value."""
    return PointRecord(
        id=row.id,
        label=row.label,
        position=row.position,
        concurrency=row.concurrency,
        region=row.region,
        role=row.role,
        accuracy=row.accuracy,
        load_pattern=row.load_pattern,
        min_duration_ms=row.min_duration_ms,
        skipped=row.skipped,
        baseline=row.campaign.baseline,
        attempts=tuple(attempt_record(attempt) for attempt in row.attempts),
    )


def attempt_record(row: AttemptRow) -> AttemptRecord:
    """Row → value."""
    return AttemptRecord(
        id=row.id,
        campaign=row.point.campaign.name,
        label=row.point.label,
        number=row.number,
        phase=row.phase,
        baseline=row.baseline,
        state=row.state,
        folder=row.folder,
        planned_samples=row.planned_samples,
        planned_passes=row.planned_passes,
        created_at=row.created_at,
        started_at=row.started_at,
        ended_at=row.ended_at,
        exit_code=row.exit_code,
        ended_by=row.ended_by,
        findings=tuple(row.findings or ()),
        metrics=row.metrics or {},
        reason=row.reason,
        owner=Owner(row.host, row.boot_id, row.pid, row.start_time),
        client_version=row.client_version,
        run_folder=folder_record(row.run_folder) if row.run_folder else None,
    )


def folder_record(row: RunFolderRow) -> FolderRecord:
    """Row → value."""
    return FolderRecord(
        path=row.path,
        recorded_at=row.recorded_at,
        total_bytes=row.total_bytes,
        manifest_sha256=row.manifest_sha256,
    )


def manifest_entry(row: RunFileRow) -> ManifestEntry:
    """Row → value."""
    return ManifestEntry(name=row.name, size_bytes=row.size_bytes, sha256=row.sha256)


def fingerprint_record(row: FingerprintRow) -> FingerprintRecord:
    """Row → value."""
    return FingerprintRecord(
        attempt_id=row.attempt_id,
        label=row.attempt.point.label,
        number=row.attempt.number,
        baseline=row.attempt.baseline,
        state=row.attempt.state,
        moment=row.moment,
        at=row.at,
        sha256=row.sha256,
        content=row.content,
    )


def lease_record(row: LeaseRow) -> LeaseRecord:
    """Row → value."""
    return LeaseRecord(
        instance=row.instance,
        campaign=row.campaign,
        label=row.label,
        since=row.since,
        beat=row.beat,
        client_until=row.client_until,
        owner=Owner(row.host, row.boot_id, row.pid, row.start_time),
    )


def event_record(row: EventRow) -> EventRecord:
    """Row → value."""
    return EventRecord(
        id=row.id, at=row.at, kind=row.kind, attempt_id=row.attempt_id, payload=row.payload
    )
