"""Recorded run folders as tests use them: the planned run, the facts and the expected verdict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from core.folder import FolderFacts
from core.run import PlannedAccuracy, PlannedRun
from tasks.collect import collect


def case_of(recorded: Path) -> dict[str, Any]:
    """The `case.json` of a recorded folder."""
    case: dict[str, Any] = json.loads((recorded / "case.json").read_bytes())
    return case


def planned_run(case: dict[str, Any]) -> PlannedRun:
    """What the recorded run was asked to do; a configuration that no client took has no plan."""
    planned, seeds = case["planned"], case["planned"]["seeds"]
    accuracy = PlannedAccuracy(
        name="acc",
        rows=planned["accuracy_rows"] or 0,
        repeats=1,
        bounds={m: (lowest, None) for m, lowest in (planned["accuracy_threshold"] or {}).items()},
    )
    return PlannedRun(
        load_pattern=planned["pattern"] or "concurrency",
        concurrency=planned["concurrency"],
        samples=planned["samples"],
        dataset_rows=planned["dataset_rows"],
        scheduler_random_seed=seeds["scheduler_random_seed"] or 0,
        dataloader_random_seed=seeds["dataloader_random_seed"] or 0,
        min_duration_ms=0,
        accuracy=(accuracy,) if planned["accuracy_rows"] else (),
        streaming=planned["pattern"] != "max_throughput",
    )


def facts_of(recorded: Path, case: dict[str, Any]) -> FolderFacts:
    """The facts of a recorded folder; its files' times are those of the recording's copy."""
    ended_by = case["ended_by"]
    facts, _ = collect(
        recorded / "out",
        attempt_started_at=0.0,
        exit_code=case["exit_code"],
        ended_by="watchdog" if ended_by.startswith("rig: gave up") else ended_by,
    )
    return facts
