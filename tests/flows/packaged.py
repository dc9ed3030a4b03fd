"""A finished campaign without a run: records and run folders as the client would have left them.

Nothing in it was measured; it is for what comes after the measurements.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from core.accuracy import official_bounds
from core.client_config import merged
from core.files import make_read_only, manifest
from core.fingerprint import fingerprint
from core.layout import RunPaths
from core.plan import AGENTIC, MAX_THROUGHPUT, Plan, Point
from core.records import AttemptRecord, Owner, Records, open_records
from core.specimen import steady_state
from core.status import AttemptState
from flows.prepare import Prepared, prepare
from flows.session import join_record
from tests.disclosures import disclosure_dict

LEVELS = (1, 4, 16, 32, 64, 128, 256)
#: Rows of the performance dataset; a point has five passes.
ROWS = 256
#: s: how long each point issued.
SPAN_S = 3000.0
NS_PER_S = 1_000_000_000
OWNER = Owner("box", "b00t", 4242, 77)
#: Warm-up requests, and their seconds.
WARMUP, WARMUP_S = 4, 10.0


def campaign_dict(folder: Path, kind: str, **sections: Any) -> dict[str, Any]:
    """A measured campaign of a kind, with complete disclosures."""
    rows = ROWS + (kind == "dedicated")  # above the highest level
    lines = [{"prompt": f"row {row}", "conversation_id": row} for row in range(rows)]
    (folder / "perf.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    base: dict[str, Any] = {
        "campaign": "curve",
        "benchmark": "qwen3_6-35b-a3b" if kind == "agentic" else "deepseek-r1",
        "model": {"name": "served"},
        "endpoint": {"urls": ["http://127.0.0.1:9"]},
        "instance": {"name": "box", "accelerators": 8},
        "datasets": {"performance": {"path": "perf.jsonl", "rows": rows}},
        "curve": {"c_max": 256, "levels": list(LEVELS)},
        "seeds": {"target_cohort": "2026-12-C0"},
        "client": {"command": ["inference-endpoint"]},
        "records": {"folder": "data"},
        "disclosure": disclosure_dict(folder),
    }
    if kind == "dedicated":
        base["curve"]["offline"] = "dedicated"
    if kind != "agentic":
        base["datasets"]["accuracy"] = [{"name": "legacy_mlperf_deepseek_r1"}]
    return merged(base, sections)


class Finished:
    """A folder with a campaign, its records and its run folders."""

    def __init__(self, folder: Path, kind: str = "elected", **sections: Any) -> None:
        self.folder = folder
        self.file = folder / "campaign.yaml"
        self.summary: dict[str, Any] = {}  # what summaries to come have otherwise
        self.stated = campaign_dict(folder, kind, **sections)
        self.write()
        self.ready: Prepared = prepare(self.file, {})
        (folder / "data").mkdir(exist_ok=True)
        self.records: Records = open_records(self.ready.paths.database_url)
        join_record(self.ready, self.records)

    def write(self, **sections: Any) -> None:
        """Write the campaign file, with sections merged in."""
        self.stated = merged(self.stated, sections)
        self.file.write_text(yaml.safe_dump(self.stated, sort_keys=False))

    def measure(self, *labels: str, driver: str | None = "580") -> None:
        """Record a valid attempt at these points, without names at all; on a system's driver.

        Without a driver there is no fingerprint either.
        """
        for point in self.ready.plan.points:
            if not labels or point.label in labels:
                self._measure(point, driver)

    def run_of(self, label: str) -> Path:
        """The run folder of a point."""
        return self.ready.paths.runs / self.attempt(label).folder / "run"

    def attempt(self, label: str) -> AttemptRecord:
        """The attempt at a point."""
        points = {p.label: p for p in self.records.points_with_attempts("curve")}
        return points[label].attempts[-1]

    def _measure(self, point: Point, driver: str | None) -> None:
        attempt = self.records.new_attempt(
            "curve", point.label, owner=OWNER, samples=samples_of(self.ready), passes=5
        )
        folder = self.ready.paths.runs / attempt.folder / "run"
        write_run(folder, self.ready, point, self.summary)
        if driver is not None:
            found = fingerprint({"datasets": _datasets(self.ready), "probes": {"driver": driver}})
            self.records.record_fingerprint(attempt.id, "before", found)
        self.records.change_state(attempt.id, AttemptState.RUNNING)
        self.records.record_folder(attempt.id, folder, manifest(folder))
        make_read_only(folder)
        self.records.change_state(
            attempt.id, AttemptState.VALID, exit_code=0, ended_by="itself", findings=[]
        )


def _datasets(ready: Prepared) -> list[dict[str, Any]]:
    data = ready.campaign.datasets
    scored = [{"name": d.name, "rows": d.rows} for d in data.accuracy]
    return [{"name": data.performance.name, "rows": ready.plan.dataset_rows}, *scored]


# --- A run folder --------------------------------------------------------------------------------


def write_run(
    folder: Path, ready: Prepared, point: Point, changes: Mapping[str, Any] | None = None
) -> None:
    """Write a run folder as the client would have, its summary changed."""
    paths = RunPaths(folder)
    for path in (paths.summary, paths.snapshot):
        path.parent.mkdir(parents=True, exist_ok=True)
    paths.config.write_text(yaml.safe_dump(config(ready.plan, ready, point)))
    paths.summary.write_text(json.dumps({**summary(ready, point), **(changes or {})}))
    paths.events.write_text("".join(events(samples_of(ready))))
    paths.sample_map.write_text("{}")
    paths.snapshot.write_text("{}")
    paths.report.write_text("a report\n")
    scored = accuracy(ready, point)
    if scored:
        paths.accuracy.parent.mkdir()
        paths.accuracy.write_text(json.dumps({"accuracy_scores": scored}))


def samples_of(ready: Prepared) -> int:
    """Samples of a point: whole passes."""
    rows = ready.plan.dataset_rows or ROWS
    return rows * 5


def _pattern(point: Point) -> dict[str, Any]:
    level = None if point.load_pattern == MAX_THROUGHPUT else point.concurrency
    return {"type": point.load_pattern, "target_concurrency": level}


def _seeds(plan: Plan) -> dict[str, int]:
    return {
        "scheduler_random_seed": plan.seed_set.scheduler_rng_seed,
        "dataloader_random_seed": plan.seed_set.sample_index_rng_seed,
    }


def config(plan: Plan, ready: Prepared, point: Point) -> dict[str, Any]:
    """The client's record of its configuration."""
    accuracy_sets = ready.campaign.datasets.accuracy if point.accuracy else ()
    return {
        "model_params": {"streaming": "off" if point.load_pattern == MAX_THROUGHPUT else "on"},
        "datasets": [
            {"name": ready.campaign.datasets.performance.name, "type": "performance"},
            *({"name": dataset.name, "type": "accuracy"} for dataset in accuracy_sets),
        ],
        "settings": {
            "runtime": _seeds(plan),
            "load_pattern": _pattern(point),
            "client": {"stream_all_chunks": True},
            "warmup": {"enabled": True, "salt": True, "drain": True},
        },
    }


def summary(ready: Prepared, point: Point) -> dict[str, Any]:
    """The summary of a faultless run; higher levels have more throughput."""
    samples = samples_of(ready)
    percentiles = {"percentiles": {"50.0": 1e7, "90.0": 2e7}}
    offline = point.load_pattern == MAX_THROUGHPUT
    window = steady_state()
    window["window"] |= {"n_samples": samples, "super_pass_size": samples // 5}
    window["window"]["duration_s"] = SPAN_S
    made: dict[str, Any] = {
        "version": "0.2.0",
        "git_sha": "ea33275",
        "test_started_at": 0,
        "n_samples_issued": samples,
        "n_samples_completed": samples,
        "n_samples_failed": 0,
        "duration_ns": int((SPAN_S + 10) * NS_PER_S),
        "state": "complete",
        "complete": True,
        "ttft": {} if offline else percentiles,
        "tpot": {} if offline else percentiles,
        "latency": {"total": 1e12, **percentiles},
        "output_sequence_lengths": {"total": samples * 100 * (1 + point.concurrency)},
        "finish_reason_counts": {"stop": samples},
        "run_config": {"load_pattern": _pattern(point), "warmup": {}, **_seeds(ready.plan)},
        "steady_state": window,
    }
    if point.load_pattern == AGENTIC:
        lengths = {"output_sequence_lengths": {"avg": 383.0}}
        made["output_sequence_lengths_full_run"] = lengths
    return made


def accuracy(ready: Prepared, point: Point) -> list[dict[str, Any]]:
    """Scores that pass."""
    entries: list[dict[str, Any]] = []
    if point.load_pattern == AGENTIC:
        entries.append({"dataset_name": "performance", "dataset_type": "performance", "score": 0.6})
    bounds = official_bounds(ready.campaign.benchmark)
    for dataset in ready.campaign.datasets.accuracy if point.accuracy else ():
        rows = dataset.rows or 0
        score: Any = 0.72 if bounds is None else {"exact_match": 82.0}
        entries.append(
            {
                "dataset_name": dataset.name,
                "dataset_type": "accuracy",
                "score": score,
                "unit_samples": rows,
                "num_repeats": 1,
                "complete": True,
                "response_counts": {"issued": rows, "scored": rows, "empty": 0, "missing": 0},
            }
        )
    return entries


def events(samples: int) -> Iterator[str]:
    """Events of a run with a warm-up: every sample issued, answered and completed."""
    at = 0

    def record(kind: str, uuid: str = "", stamp_s: float = 0.0, **more: Any) -> str:
        stamp = {"timestamp_ns": int(stamp_s * NS_PER_S), "sample_uuid": uuid, **more}
        return json.dumps({"event_type": kind, **stamp}) + "\n"

    for at in range(WARMUP):
        yield from (record(kind, f"w{at}", 1.0) for kind in ("sample.issued", "sample.recv_first"))
        yield record("sample.complete", f"w{at}", 2.0, finish_reason="stop")
    start = 1.0 + WARMUP_S
    yield record("session.start_performance_tracking", "", start)
    for at in range(samples):
        stamp = start + SPAN_S * at / (samples - 1)
        uuid = f"s{at}"
        yield from (record(k, uuid, stamp) for k in ("sample.issued", "sample.recv_first"))
        yield record("sample.complete", uuid, stamp, finish_reason="stop")
    end = start + SPAN_S + 1
    yield record("session.stop_performance_tracking", "", end)
    yield record("session.ended", "", end)
