"""Test data of the stand-in client: what is claimed is marked, and consistent."""

from __future__ import annotations

import json

import pytest

from tasks.rehearsal.claims import VARIABLE, Claims, claimed_entry, claims_of, slowed
from tasks.rehearsal.failures import ClientInputError

SUMMARY = {
    "n_samples_completed": 40,
    "duration_ns": 1_000_000_000,
    "qps": 40.0,
    "tps": 80.0,
    "ttft": {"avg": 2.0, "histogram": {"buckets": [[1.0, 3.0]], "counts": [40]}},
    "tpot": {"percentiles": {"90.0": 5.0}},
    "latency": {},
}


def test_a_plain_rehearsal_claims_nothing() -> None:
    assert claims_of({}) is None


def test_claims_that_can_not_be_read_are_refused() -> None:
    """As a mistake in the input, by the variable's name."""
    for text in ("{", "[]", '{"clock": 1, "speed": 2}'):
        with pytest.raises(ClientInputError, match=VARIABLE):
            claims_of({VARIABLE: text})


def test_a_slow_clock_changes_times_and_rates_alone() -> None:
    """Counts stay; throughput times duration is what it was; the summary says what it is."""
    data = claims_of({VARIABLE: json.dumps({"clock": 100.0})})
    assert data is not None
    changed = slowed(SUMMARY, data, rows=8)
    assert changed["duration_ns"] == 100 * SUMMARY["duration_ns"]
    assert changed["qps"] * changed["duration_ns"] == SUMMARY["qps"] * SUMMARY["duration_ns"]
    assert changed["ttft"] == {
        "avg": 200.0,
        "histogram": {"buckets": [[100.0, 300.0]], "counts": [40]},
    }
    assert changed["tpot"]["percentiles"] == {"90.0": 500.0}
    assert changed["n_samples_completed"] == 40
    assert changed["test_data"] == {"clock": 100.0}
    assert changed["steady_state"]["status"] == "windowable"
    assert changed["steady_state"]["window"]["duration_s"] == 100.0
    assert slowed(SUMMARY, data, rows=20)["steady_state"]["status"] == "insufficient_passes"


def test_a_claimed_score_is_marked() -> None:
    """Of a dataset that is named; any other keeps its own."""
    data = Claims(clock=1.0, scores={"r1": {"exact_match": 82.0}})
    entry = {"dataset_name": "r1", "score": 0.0}
    made = claimed_entry(entry, data, 4388)
    assert made["score"] == {"exact_match": 82.0}
    assert made["response_counts"]["scored"] == 4388
    assert made["test_data"] is True
    other = {"dataset_name": "other", "score": 0.5}
    assert claimed_entry(other, data, 10) == other
