"""Metrics, summary and report, worked out anew from every recorded run of the real client."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tasks.rehearsal.events import Event
from tasks.rehearsal.metrics import Aggregator
from tasks.rehearsal.series import Series, metric
from tasks.rehearsal.summary import VERSION, report_lines, summarize

#: Recorded runs, without those that had no tokenizer, another load pattern, or no end.
CASES = [
    "c01_perf_c1",
    "c01_perf_c16",
    "c01_perf_c4",
    "c02_both_numeric_truth",
    "c02_both_pass",
    "c03_both_acc50",
    "c04_acc_only",
    "c05_offline",
    "c06_err500",
    "c07_sigint",
    "c07_sigint_both",
    "c10_stall_tail_drain",
    "c11_dies",
    "c13_wrong_model",
    "c15_warmup_salt",
    "c15_warmup_salt_drain",
    "c17_maxdur",
    "c17_no_count",
    "c19_drop_midstream",
    "c21_empty",
    "c24_chunks_off",
]


def recorded(fixtures: Path, case: str, path: str) -> Any:
    return json.loads((fixtures / case / "out" / path).read_bytes())


def aggregate(fixtures: Path, case: str) -> dict[str, Any]:
    """The snapshot that our own arithmetic makes of a recorded run's events."""
    names = [
        one["name"] for one in recorded(fixtures, case, "metrics/final_snapshot.json")["metrics"]
    ]
    aggregator = Aggregator(streaming="ttft_ns" in names, estimates=True)
    for line in (fixtures / case / "out" / "events.jsonl").read_bytes().splitlines():
        document = json.loads(line)
        event = Event(
            document["event_type"],
            document["timestamp_ns"],
            document["sample_uuid"],
            document["data"],
            document.get("finish_reason"),
            document.get("worker_id"),
        )
        assert event.line() == line + b"\n"
        aggregator.observe(event)
    return aggregator.snapshot("complete")


def test_events_add_up_to_the_recorded_snapshot_to_the_last_digit(
    fixtures_dir: Path, case: str
) -> None:
    """Every event is written byte for byte as recorded, every counter and series is equal."""
    ours = aggregate(fixtures_dir, case)
    theirs = recorded(fixtures_dir, case, "metrics/final_snapshot.json")
    assert list(ours) == list(theirs)
    volatile = ("counter", "timestamp_ns")
    assert {key: ours[key] for key in ours if key not in volatile} == {
        key: theirs[key] for key in theirs if key not in volatile
    }


def test_the_snapshot_gives_the_recorded_summary(fixtures_dir: Path, case: str) -> None:
    """Same keys in the same order, same values; only the version says rehearsal."""
    snapshot = recorded(fixtures_dir, case, "metrics/final_snapshot.json")
    theirs = recorded(fixtures_dir, case, "performance/result_summary.json")
    ours = summarize(snapshot, theirs["run_config"])
    assert list(ours) == list(theirs)
    assert ours == theirs | {"version": VERSION}


def test_the_summary_gives_the_recorded_report(fixtures_dir: Path, case: str) -> None:
    summary = recorded(fixtures_dir, case, "performance/result_summary.json")
    results = fixtures_dir / case / "out" / "accuracy" / "accuracy_results.json"
    accuracy = json.loads(results.read_bytes())["accuracy_scores"] if results.exists() else []
    report = (fixtures_dir / case / "out" / "report.txt").read_text(encoding="utf-8")
    assert "\n".join([*report_lines(summary, accuracy), ""]) == report


def test_an_interrupted_run_is_not_complete_and_has_no_estimates(fixtures_dir: Path) -> None:
    """As the real client writes it when it reached no endpoint (c12_unreachable)."""
    aggregator = Aggregator(streaming=True, estimates=True)
    snapshot = aggregator.snapshot("interrupted")
    theirs = recorded(fixtures_dir, "c12_unreachable", "metrics/final_snapshot.json")
    assert snapshot["metrics"] == theirs["metrics"]
    summary = summarize(snapshot, {})
    assert (summary["state"], summary["complete"]) == ("interrupted", False)
    assert "WARNING: run was interrupted" in next(
        line for line in report_lines(summary, []) if "WARNING" in line
    )


def test_values_below_one_and_single_values_have_a_histogram_too() -> None:
    stat = Series("tpot_ns", whole=False, values=[0.5]).stat(final=True)
    assert sum(count for _, count in stat["histogram"]) == 1
    assert metric(stat)["std_dev"] == 0.0
