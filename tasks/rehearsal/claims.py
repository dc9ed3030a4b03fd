"""Test data: a stand-in run whose files claim a real length and official scores, and say so.

`PARETO_REHEARSAL_TEST_DATA` holds the claims as JSON. The clock factor makes every duration in the
summary that many times longer, so that a rehearsal of a second reads as one of twenty minutes; the
scores stand for those of an official dataset, of which only the first rows are asked. Every file
that claims something has `test_data` in it: such runs exist only to try a package.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tasks.rehearsal.dataset import Row
from tasks.rehearsal.failures import ClientInputError
from tasks.rehearsal.schema import Config, Dataset

#: The variable with the claims.
VARIABLE = "PARETO_REHEARSAL_TEST_DATA"
#: Metrics of the summary that are times.
_TIMES = ("ttft", "tpot", "latency")
#: Fewest passes of a steady-state window (§4.4).
_FEWEST_PASSES = 4
_NS_PER_S = 1_000_000_000


@dataclass(frozen=True)
class Claims:
    """What a run claims."""

    clock: float  # factor on every duration
    asked: int = 36  # rows of a scored dataset that are asked
    scores: Mapping[str, Any] = field(default_factory=dict)  # dataset → its score
    inline: float | None = None  # score of the timed requests, conversations only
    tokens_per_turn: float | None = None  # mean over the full run, conversations only


def claims_of(env: Mapping[str, str]) -> Claims | None:
    """The claims of the environment; None: a plain rehearsal.

    Raises:
        ClientInputError: they can't be read.
    """
    text = env.get(VARIABLE)
    if not text:
        return None
    try:
        return Claims(**json.loads(text))
    except (ValueError, TypeError) as problem:
        raise ClientInputError(f"{VARIABLE}: {problem}") from problem


def slowed(summary: dict[str, Any], data: Claims, rows: int) -> dict[str, Any]:
    """A summary as a clock that many times slower would have it.

    Args:
        summary: The run's own.
        data: The claims.
        rows: Rows of the timed dataset.
    """
    changed = dict(summary)
    for name in _TIMES:
        changed[name] = _times(summary[name], data.clock)
    for name in ("qps", "tps"):
        changed[name] = summary[name] and summary[name] / data.clock
    if summary["duration_ns"] is not None:
        changed["duration_ns"] = round(summary["duration_ns"] * data.clock)
        changed["steady_state"] = _window(changed, rows)
    if data.tokens_per_turn is not None:
        lengths = {"output_sequence_lengths": {"avg": data.tokens_per_turn}}
        changed["output_sequence_lengths_full_run"] = lengths
    return changed | {"test_data": {"clock": data.clock}}


def _times(value: Any, factor: float) -> Any:
    """Every number of a metric multiplied, but for counts and the names of percentiles."""
    if isinstance(value, dict):
        return {
            key: inner if key in ("counts", "count") else _times(inner, factor)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [_times(inner, factor) for inner in value]
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value * factor if is_number else value


def _window(summary: Mapping[str, Any], rows: int) -> dict[str, Any]:
    """A steady-state block over all passes: windowable where they are enough."""
    completed = summary["n_samples_completed"]
    passes = completed // rows
    states = {f"{name}_{rank}": "Plateau" for name in ("ttft", "tpot") for rank in ("p50", "p90")}
    return {
        "status": "windowable" if passes >= _FEWEST_PASSES else "insufficient_passes",
        "verdict": "STEADY STATE",
        "state": states,
        "window": {
            "super_pass_start": 0,
            "super_pass_end": max(0, passes - 1),
            "super_pass_size": rows,
            "n_samples": completed,
            "duration_s": summary["duration_ns"] / _NS_PER_S,
        },
    }


def rows_of(dataset: Dataset, count: int) -> list[Row]:
    """Rows that stand for a dataset which only the reference client can fetch."""
    return [{"prompt": f"{dataset.name} {row}", "ground_truth": ""} for row in range(count)]


def is_claimed(dataset: Dataset, data: Claims | None) -> bool:
    """Whether a scored dataset's score is claimed."""
    return data is not None and dataset.name in data.scores


def claimed_entry(entry: dict[str, Any], data: Claims, samples: int) -> dict[str, Any]:
    """The entry of a scored dataset with what is claimed of it.

    Args:
        entry: The run's own.
        data: The claims.
        samples: Samples of the whole dataset.
    """
    if entry["dataset_name"] not in data.scores:
        return entry
    counts = {"issued": samples, "scored": samples, "empty": 0, "missing": 0}
    score = data.scores[entry["dataset_name"]]
    return entry | {"score": score, "response_counts": counts, "test_data": True}


def inline_entry(config: Config, data: Claims | None) -> list[dict[str, Any]]:
    """The score of the timed requests, where conversations have one."""
    if data is None or data.inline is None:
        return []
    timed = next(dataset for dataset in config.datasets if dataset.type == "performance")
    if timed.agentic_inference is None:
        return []
    return [
        {
            "dataset_name": "performance",
            "dataset_type": "performance",
            "extractor": "",
            "score": data.inline,
            "unit_samples": 1,
            "num_repeats": 1,
            "total_samples": 1,
            "duration_s": 0.0,
            "complete": True,
            "response_counts": {"issued": 1, "scored": 1, "empty": 0, "missing": 0},
            "test_data": True,
        }
    ]
