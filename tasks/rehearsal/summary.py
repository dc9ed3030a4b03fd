"""The result summary and its text form: `performance/result_summary.json` and `report.txt`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from tasks.rehearsal.metrics import FINISH_PREFIX
from tasks.rehearsal.series import metric

#: The version that the stand-in client writes wherever the reference client writes its own.
VERSION = "0.1.0+rehearsal"
#: Nanoseconds in a second.
NS_PER_S = 1e9
#: Hashes of the longest histogram bar in a report.
_BAR = 30

#: Title, key, unit and factor of each section of a report.
_SECTIONS = (
    ("TTFT", "ttft", "ms", 1e-6),
    ("TPOT", "tpot", "ms", 1e-6),
    ("Latency", "latency", "ms", 1e-6),
    ("Input sequence lengths", "input_sequence_lengths", "tokens", 1.0),
    ("Output sequence lengths", "output_sequence_lengths", "tokens", 1.0),
)


def summarize(snapshot: dict[str, Any], run_config: dict[str, Any]) -> dict[str, Any]:
    """Return the content of `result_summary.json`.

    Args:
        snapshot: The content of `final_snapshot.json`.
        run_config: Load pattern, warm-up and seeds of the run.
    """
    counters = {one["name"]: one["value"] for one in snapshot["metrics"] if "value" in one}
    series = {one["name"]: metric(one) for one in snapshot["metrics"] if "count" in one}
    duration_ns = counters["tracked_duration_ns"] or None
    completed = counters["tracked_samples_completed"]
    tokens = series["osl"].get("total")
    return {
        "version": VERSION,
        "git_sha": None,
        "test_started_at": 0,
        "n_samples_issued": counters["tracked_samples_issued"],
        "n_samples_completed": completed,
        "n_samples_failed": counters["tracked_samples_failed"],
        "duration_ns": duration_ns,
        "state": snapshot["state"],
        "complete": snapshot["state"] == "complete" and snapshot["n_pending_tasks"] == 0,
        "ttft": series.get("ttft_ns", {}),
        "tpot": series.get("tpot_ns", {}),
        "latency": series["sample_latency_ns"],
        "output_sequence_lengths": series["osl"],
        "input_sequence_lengths": series["isl"],
        "legacy_loadgen_window_duration_ns": None,
        "qps": _per_second(completed, duration_ns),
        "tps": _per_second(tokens, duration_ns),
        "finish_reason_counts": {
            name.removeprefix(FINISH_PREFIX): value
            for name, value in counters.items()
            if name.startswith(FINISH_PREFIX)
        },
        "run_config": run_config,
    }


def _per_second(count: float | None, duration_ns: int | None) -> float | None:
    if count is None or duration_ns is None:
        return None
    return count / (duration_ns / NS_PER_S)


def summary_lines(summary: dict[str, Any], accuracy: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the summary block, which the log and the report share."""
    yield "----------------- Summary -----------------"
    if summary["state"] == "interrupted":
        yield (
            "WARNING: run was interrupted (SIGTERM/SIGINT) — "
            "metrics below are best-effort partial data."
        )
    yield f"Version: {summary['version']}"
    yield "Run config:"
    for key, value in summary["run_config"].items():
        yield f"  {key}: {_flat(value)}"
    for name in ("issued", "completed", "failed"):
        yield f"Total samples {name}: {summary[f'n_samples_{name}']}"
    duration_ns = summary["duration_ns"]
    yield f"Duration: {_number(duration_ns, 1 / NS_PER_S)}{' seconds' if duration_ns else ''}"
    yield f"QPS: {_number(summary['qps'])}"
    yield f"TPS: {_number(summary['tps'])}"
    if accuracy:
        yield from _accuracy_lines(accuracy)


def _flat(value: Any) -> Any:
    if isinstance(value, dict):
        return ", ".join(f"{key}={item}" for key, item in value.items())
    return value


def _number(value: float | None, factor: float = 1.0) -> str:
    return "N/A" if value is None else f"{value * factor:.2f}"


def average_score(accuracy: list[dict[str, Any]]) -> float | None:
    """Return the plain mean of the datasets' scores, or None if nothing was scored."""
    scores = [entry["score"] for entry in accuracy if isinstance(entry["score"], (int, float))]
    return sum(scores) / len(scores) if scores else None


def _accuracy_lines(accuracy: list[dict[str, Any]]) -> Iterator[str]:
    yield "Accuracy:"
    for entry in accuracy:
        yield from _dataset_lines(entry)
    if (average := average_score(accuracy)) is not None:
        yield f"  Average: {average:.4g}"
    spent = [entry["osl_tokenize_s"] for entry in accuracy if "osl_tokenize_s" in entry]
    if spent:
        yield f"  OSL tokenization: {sum(spent):.3g}s"


def _dataset_lines(entry: dict[str, Any]) -> Iterator[str]:
    value = entry["score"]
    score = "N/A" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
    yield (
        f"  {entry['dataset_name']}: {score} (unit={entry['unit_samples']}, "
        f"repeats={entry['num_repeats']}, total={entry['total_samples']}, "
        f"duration={entry['duration_s']:.2f}s)"
    )
    counts = entry["response_counts"]
    yield (
        f"    responses: {counts['scored']}/{counts['issued']} scored "
        f"({counts['empty']} empty, {counts['missing']} missing)"
    )
    if lengths := entry.get("output_sequence_lengths"):
        yield (
            f"    output tokens (avg/min/max): "
            f"{lengths['avg']:.1f}/{lengths['min']}/{lengths['max']}"
        )


def report_lines(summary: dict[str, Any], accuracy: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of `report.txt`."""
    yield from summary_lines(summary, accuracy)
    yield ""
    yield "------------------- Latency Breakdowns -------------------"
    for title, key, unit, factor in _SECTIONS:
        if summary[key]:
            yield f"{title}:"
            yield from _section_lines(summary[key], unit, partial(_number, factor=factor))
            yield ""
    yield "----------------- End of Report -----------------"


def _section_lines(
    values: dict[str, Any], unit: str, scaled: Callable[[float | None], str]
) -> Iterator[str]:
    names = {"Min": "min", "Max": "max", "Median": "median", "Avg.": "avg", "Std Dev.": "std_dev"}
    for name, key in names.items():
        yield f"  {name}: {scaled(values.get(key))} {unit}"
    yield ""
    yield "  Histogram:"
    yield from _bars(values.get("histogram", {"buckets": [], "counts": []}), scaled)
    yield ""
    yield "  Percentiles:"
    for rank, value in values.get("percentiles", {}).items():
        yield f"  {rank:>6}: {scaled(value)} {unit}"
    if estimates := values.get("early_stopping_percentiles"):
        yield ""
        yield "  Early-stopping percentile estimates (N/A = insufficient samples):"
        for rank, value in estimates.items():
            yield f"  {rank:>6}: {scaled(value)} {unit}"


def _bars(histogram: dict[str, Any], scaled: Callable[[float | None], str]) -> Iterator[str]:
    labels = [f"  [{scaled(low)}, {scaled(high)})" for low, high in histogram["buckets"]]
    if not labels:
        return
    labels[-1] = labels[-1][:-1] + "]"
    width = max(map(len, labels))
    longest = max(histogram["counts"])
    for label, count in zip(labels, histogram["counts"], strict=True):
        bar = "#" * int(count * (_BAR / longest))
        yield f"  {label:>{width}} |{bar} {count}"
