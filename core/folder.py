"""A run folder as plain facts: the names of its files, its configuration, and what it is.

Facts are collected once (`tasks/collect.py`) and judged without touching the disk
(`core/validate.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import orjson

from core import layout
from core.accuracy import AccuracyReport
from core.events import EventFacts
from core.reading import Fields, FolderProblem, Problems, load_yaml, shown
from core.summary import Summary

#: Files that the client writes into its `report_dir`, by their names in it.
CONFIG = layout.CONFIG_YAML
SUMMARY = f"{layout.PERFORMANCE_SUBDIR}/{layout.RESULT_SUMMARY_JSON}"
ACCURACY = f"{layout.ACCURACY_SUBDIR}/{layout.ACCURACY_RESULTS_JSON}"
EVENTS = layout.EVENTS_JSONL
SAMPLE_MAP = layout.SAMPLE_IDX_MAP_JSON
SNAPSHOT = f"{layout.METRICS_SUBDIR}/{layout.FINAL_SNAPSHOT_JSON}"
REPORT = layout.REPORT_TXT
#: Files that the client writes together at the end of its timed phase.
RESULTS = (SUMMARY, EVENTS, SAMPLE_MAP, SNAPSHOT, REPORT)
#: The name of the timed phase in the sample map, whatever its dataset is called.
TIMED_PHASE = "performance"


@dataclass(frozen=True)
class FileFact:
    """One file of a run folder."""

    size_bytes: int
    modified_at: float  # s since the epoch


@dataclass(frozen=True)
class RunConfig:
    """What the client's own record of its configuration says; None: it doesn't say."""

    load_pattern: str | None
    concurrency: int | None
    scheduler_random_seed: int | None
    dataloader_random_seed: int | None
    duration_cap_ms: int | None
    streaming: bool | None
    stream_all_chunks: bool | None
    warmup_enabled: bool | None
    warmup_salt: bool | None
    accuracy_datasets: tuple[str, ...]


def parse_config(text: bytes) -> RunConfig | Problems:
    """Read the client's `config.yaml`, or say what in it can't be read."""
    value, unreadable = load_yaml(text, CONFIG)
    if unreadable:
        return unreadable
    problems: list[FolderProblem] = []
    config = _run_config(Fields(value, CONFIG, problems))
    return tuple(problems) or config


def _run_config(top: Fields) -> RunConfig:
    settings = top.section("settings")
    runtime = settings.section("runtime")
    pattern = settings.section("load_pattern")
    client = settings.optional_section("client")
    warmup = settings.optional_section("warmup")
    return RunConfig(
        load_pattern=pattern.optional_text("type"),
        concurrency=pattern.optional_count("target_concurrency"),
        scheduler_random_seed=runtime.optional_count("scheduler_random_seed"),
        dataloader_random_seed=runtime.optional_count("dataloader_random_seed"),
        duration_cap_ms=(
            runtime.optional_count("max_duration_ms")
            or runtime.optional_count("max_issue_duration_ms")
        ),
        streaming=_streaming(top.optional_section("model_params")),
        stream_all_chunks=client.optional_flag("stream_all_chunks"),
        warmup_enabled=warmup.optional_flag("enabled"),
        warmup_salt=warmup.optional_flag("salt"),
        accuracy_datasets=_accuracy_datasets(top),
    )


def _streaming(model: Fields) -> bool | None:
    """Whether answers were streamed; an unquoted on or off reads as a truth value in YAML."""
    value = model.values.get("streaming")
    if isinstance(value, bool):
        return value
    return value == "on" if value in ("on", "off") else None


def _accuracy_datasets(top: Fields) -> tuple[str, ...]:
    datasets = top.values.get("datasets")
    if not isinstance(datasets, list):
        top.note("datasets", "wanted a list of datasets")
        return ()
    entries = [Fields(item, f"{CONFIG}: datasets", top.problems) for item in datasets]
    return tuple(
        entry.text("name") for entry in entries if entry.optional_text("type") == "accuracy"
    )


def parse_sample_map(text: bytes) -> dict[str, int] | Problems:
    """Count the samples of each phase in `sample_idx_map.json`, or say what can't be read.

    The file has a line a sample, so it is read by the fast parser.
    """
    try:
        phases = orjson.loads(text)
    except ValueError as error:
        return (FolderProblem(SAMPLE_MAP, f"not readable as JSON: {error}"),)
    if not isinstance(phases, dict):
        return (FolderProblem(SAMPLE_MAP, f"wanted an object, found {shown(phases)}"),)
    return {phase: len(samples) for phase, samples in phases.items() if isinstance(samples, dict)}


@dataclass(frozen=True)
class FolderFacts:
    """Everything that a verdict on a run folder follows from.

    Of each file: its content, or the problems that it can't be read, or None where it is missing.
    """

    exists: bool
    started_at: float  # s since the epoch: when the attempt began
    exit_code: int | None  # of the client; None: it was never known
    ended_by: str  # itself, watchdog, deadline, stop-request, or who else ended it
    files: Mapping[str, FileFact] = field(default_factory=dict)
    problems: Problems = ()  # files that the disk didn't give
    config: RunConfig | Problems | None = None
    summary: Summary | Problems | None = None
    accuracy: AccuracyReport | Problems | None = None
    sample_map: Mapping[str, int] | Problems | None = None  # phase → samples
    events: EventFacts | None = None
