"""Names of every file and folder that a campaign writes or reads (§8.1 for the official ones).

    <data folder>/pareto.db
    <runs folder>/<campaign>/<label>/attempt-02/     an attempt: everything about one try
        run/                                         the client's report_dir: the run folder
        client.yaml, guard.json, attempt.json, …

Names of the official tools come from the checker's own layout module.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from submission_checker.layout import (
    ACCURACY_RESULTS_JSON,
    ACCURACY_SUBDIR,
    CONFIG_YAML,
    DOCS_DIR,
    PERFORMANCE_SUBDIR,
    POINT_YAML,
    README_MD,
    RESULT_SUMMARY_JSON,
    RESULTS_DIR,
    SRC_DIR,
    SYSTEM_DESC_JSON,
    SYSTEM_POWER_JSON,
    parse_point_dir,
    point_dir_name,
)

from core.campaign import Campaign
from core.errors import InputError

__all__ = [
    "ACCURACY_RESULTS_JSON",
    "ACCURACY_SUBDIR",
    "CONFIG_YAML",
    "DATABASE",
    "DOCS_DIR",
    "EVENTS_JSONL",
    "FINAL_SNAPSHOT_JSON",
    "METRICS_SUBDIR",
    "PERFORMANCE_SUBDIR",
    "POINT_YAML",
    "README_MD",
    "READY",
    "REPORT_TXT",
    "RESULTS_DIR",
    "RESULT_SUMMARY_JSON",
    "RUNS",
    "SAMPLE_IDX_MAP_JSON",
    "SRC_DIR",
    "STEADY_STATE_JSON",
    "SYSTEM_DESC_JSON",
    "SYSTEM_POWER_JSON",
    "AttemptPaths",
    "CampaignPaths",
    "RunPaths",
    "attempt_path",
    "instance_beat_path",
    "instance_lock_path",
    "machine_mark_path",
    "parse_point_dir",
    "point_dir_name",
    "worker_folder",
]

#: The records database in the data folder.
DATABASE = "pareto.db"
#: The runs folder in the data folder.
RUNS = "runs"

#: Further names in a run folder, as the client writes them (mlcommons/endpoints at ea33275).
EVENTS_JSONL = "events.jsonl"
REPORT_TXT = "report.txt"
SAMPLE_IDX_MAP_JSON = "sample_idx_map.json"
METRICS_SUBDIR = "metrics"
FINAL_SNAPSHOT_JSON = "final_snapshot.json"
#: What the client's detector of steady state writes.
STEADY_STATE_JSON = "steady_state.json"
#: Written by the client when its aggregator has started; says nothing about the end of a run.
READY = ".ready"

#: A name that is safe as one part of a path.
_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True)
class RunPaths:
    """Files of a run folder, as the client writes them."""

    path: Path

    @property
    def config(self) -> Path:
        """The configuration that the client resolved."""
        return self.path / CONFIG_YAML

    @property
    def summary(self) -> Path:
        """Metrics of the timed phase."""
        return self.path / PERFORMANCE_SUBDIR / RESULT_SUMMARY_JSON

    @property
    def accuracy(self) -> Path:
        """Scores of the accuracy run."""
        return self.path / ACCURACY_SUBDIR / ACCURACY_RESULTS_JSON

    @property
    def events(self) -> Path:
        """Every request's events, warm-up included."""
        return self.path / EVENTS_JSONL

    @property
    def snapshot(self) -> Path:
        """The aggregator's last state."""
        return self.path / METRICS_SUBDIR / FINAL_SNAPSHOT_JSON

    @property
    def sample_map(self) -> Path:
        """Sample ids → rows of the dataset."""
        return self.path / SAMPLE_IDX_MAP_JSON

    @property
    def report(self) -> Path:
        """The client's report for people."""
        return self.path / REPORT_TXT


@dataclass(frozen=True)
class AttemptPaths:
    """Files of an attempt's folder."""

    path: Path

    @property
    def run(self) -> RunPaths:
        """The run folder."""
        return RunPaths(self.path / "run")

    @property
    def client_yaml(self) -> Path:
        """The configuration that the client is given."""
        return self.path / "client.yaml"

    @property
    def client_stdout(self) -> Path:
        """What the client printed."""
        return self.path / "client.stdout.log"

    @property
    def client_stderr(self) -> Path:
        """What the client printed as errors, its progress bar included."""
        return self.path / "client.stderr.log"

    @property
    def guard_spec(self) -> Path:
        """What the guard is asked to do."""
        return self.path / "guard-spec.json"

    @property
    def guard_status(self) -> Path:
        """What the guard sees; replaced as a whole each time."""
        return self.path / "guard.json"

    @property
    def guard_log(self) -> Path:
        """What the guard did."""
        return self.path / "guard.log"

    @property
    def stop_request(self) -> Path:
        """Asks the guard to end the client."""
        return self.path / "stop.json"

    @property
    def outcome(self) -> Path:
        """Outcome of the attempt, for when the records can't take it."""
        return self.path / "attempt.json"


@dataclass(frozen=True)
class CampaignPaths:
    """Where a campaign's records and run folders lie."""

    campaign: str
    database_url: str
    runs: Path

    @classmethod
    def of(cls, campaign: Campaign) -> CampaignPaths:
        """The places that the campaign's file states, or their defaults in its data folder."""
        records = campaign.records
        data = records.folder.absolute()
        return cls(
            campaign=campaign.campaign,
            database_url=records.database or f"sqlite:///{data / DATABASE}",
            runs=records.runs.absolute() if records.runs else data / RUNS,
        )

    def attempt(self, folder: str) -> AttemptPaths:
        """An attempt's files, by its folder as the records name it."""
        return AttemptPaths(self.runs / folder)


def attempt_path(campaign: str, label: str, number: int, phase: str = "measure") -> PurePosixPath:
    """An attempt's folder, relative to the runs folder: `attempt-02`, or `pilot-01`."""
    kind = "attempt" if phase == "measure" else _safe(phase)
    return PurePosixPath(_safe(campaign), _safe(label), f"{kind}-{number:02d}")


def campaign_lock_path(runs: Path, campaign: str) -> Path:
    """The lock that the process driving a campaign holds."""
    return runs / _safe(campaign) / "campaign.lock"


def instance_lock_path(instance: str, environ: Mapping[str, str]) -> Path:
    """The lock of an instance, one for all users of this machine's account.

    Args:
        instance: Name of the instance.
        environ: The environment: `PARETO_STATE_DIR`, else the XDG state folder.
    """
    return _state_folder(environ) / "instances" / f"{_safe(instance)}.lock"


def machine_mark_path(environ: Mapping[str, str]) -> Path:
    """What tells this machine, or container with its state, from others of the same name."""
    return _state_folder(environ) / "machine"


def worker_folder(instance: str, environ: Mapping[str, str]) -> Path:
    """Where the worker beside an instance keeps its log and Prefect's files."""
    return _state_folder(environ) / "workers" / _safe(instance)


def instance_beat_path(lock: Path) -> Path:
    """Beside an instance's lock: touched whenever its lease was renewed, gone once that is lost."""
    return lock.with_suffix(".beat")


def _state_folder(environ: Mapping[str, str]) -> Path:
    if chosen := environ.get("PARETO_STATE_DIR"):
        return Path(chosen).absolute()
    xdg = Path(environ.get("XDG_STATE_HOME", ""))
    if not xdg.is_absolute():  # the XDG specification: a relative path is to be ignored
        xdg = Path(environ.get("HOME") or Path.home()) / ".local" / "state"
    return xdg / "pareto"


def _safe(name: str) -> str:
    """The name, unless it could lead out of its folder."""
    if not _SAFE_NAME.fullmatch(name):
        raise InputError(
            f"name {name!r} can't be a folder's: use up to 64 letters, digits, - and _,"
            " beginning with a letter or digit"
        )
    return name
