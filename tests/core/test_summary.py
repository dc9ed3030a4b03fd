"""`result_summary.json`: units, exactness, and every kind of damage as problems."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from submission_checker.models import PointSummary

from core import folder as names
from core.summary import Summary, parse_summary


@pytest.fixture
def document(fixtures_dir: Path) -> dict[str, Any]:
    """A recorded summary."""
    path = fixtures_dir / "c02_both_pass" / "out" / names.SUMMARY
    document: dict[str, Any] = json.loads(path.read_bytes())
    return document


def parsed(document: Any) -> Summary:
    """A summary without problems."""
    summary = parse_summary(json.dumps(document).encode())
    assert isinstance(summary, Summary)
    return summary


def problems(document: Any) -> list[str]:
    """Problems of a document, as lines."""
    found = parse_summary(json.dumps(document).encode())
    assert isinstance(found, tuple)
    return [str(problem) for problem in found]


def test_recorded_summaries_are_read_without_problems(recorded: Path) -> None:
    """Whatever the real client wrote is readable, whatever came of the run."""
    path = recorded / "out" / names.SUMMARY
    assert not path.exists() or isinstance(parse_summary(path.read_bytes()), Summary)


def test_numbers_are_those_of_the_official_model(document: dict[str, Any]) -> None:
    """Durations in s and percentiles in ms are what the official package reads from the file."""
    summary, official = parsed(document), PointSummary.model_validate(document)
    assert summary.duration_s == official.elapsed_duration_seconds
    assert summary.tpot_ms["90"] == official.tpot_p90_ms
    assert summary.ttft_ms["50"] == official.ttft_p50_ms
    assert summary.ttft_ms["95"] == official.ttft_p95_ms
    assert summary.output_tokens == official.total_output_tokens
    assert summary.issued == official.n_samples_issued
    assert summary.tps == pytest.approx(official.system_tps)


def test_end_to_end_interactivity_is_that_of_the_official_model(
    document: dict[str, Any], recorded: Path
) -> None:
    """From the client's sums or the named ones; none where a request failed or time is missing."""
    named = {"output_tokens_per_turn_total": 300, "e2e_turn_time_seconds_total": 12.5}
    changes: list[dict[str, Any]] = [{}, named, {**named, "n_samples_failed": 1}]
    changes += [{"n_samples_failed": 1}, {"e2e_turn_time_seconds_total": 3.0}]
    for change in changes:
        changed = document | change
        official = PointSummary.model_validate(changed).e2e_avg_interactivity
        assert parsed(changed).e2e_avg_interactivity == official, change
    path = recorded / "out" / names.SUMMARY
    if path.exists() and json.loads(path.read_bytes())["duration_ns"] is not None:
        seen = json.loads(path.read_bytes())
        official = PointSummary.model_validate(seen).e2e_avg_interactivity
        assert parsed(seen).e2e_avg_interactivity == (official or None)


def test_percentiles_are_named_shortly(document: dict[str, Any]) -> None:
    """The client's decimal keys become the shortest form; its latencies are milliseconds."""
    summary = parsed(document)
    assert " ".join(summary.latency_ms) == "99.9 99 97 95 90 80 75 50 25 10 5 1"
    assert 30 < summary.latency_ms["50"] < 50


def test_the_run_configuration_is_part_of_it(document: dict[str, Any]) -> None:
    """Pattern, level, seeds, warm-up, client and finish reasons are read as written."""
    summary = parsed(document)
    assert (summary.load_pattern, summary.concurrency) == ("concurrency", 4)
    assert summary.scheduler_random_seed == 10487924139932647040
    assert summary.dataloader_random_seed == 586478644936801402
    assert (summary.warmup.enabled, summary.warmup.salt, summary.warmup.drain) == (False,) * 3
    assert (summary.version, summary.git_sha) == ("0.1.0", None)
    assert (summary.state, summary.complete) == ("complete", True)
    assert summary.finished_normally == 40
    assert summary.steady_state is None


@pytest.mark.parametrize("seed", [0, 2**63, 2**64 - 1, 2**64])
def test_seeds_stay_exact(document: dict[str, Any], seed: int) -> None:
    """A seed is never rounded to a double."""
    document["run_config"]["scheduler_random_seed"] = seed
    assert parsed(document).scheduler_random_seed == seed


def test_later_clients_may_say_more(document: dict[str, Any]) -> None:
    """Unknown keys are fine; the steady-state block and the full-run length are kept."""
    block = {"status": "windowable", "window": {"duration_s": 1201.5}}
    document["steady_state"] = block
    document["output_sequence_lengths_full_run"] = {"output_sequence_lengths": {"avg": 383.25}}
    document["run_config"]["ruleset"] = {"name": "x"}
    document["ttft"]["percentiles"] |= {"99.99": 1_000_000, "100.0": 2_000_000, "0": 0}
    summary = parsed(document)
    assert summary.steady_state == block
    assert summary.full_run_mean_output_tokens == 383.25
    assert [summary.ttft_ms[p] for p in ("99.99", "100", "0")] == [1.0, 2.0, 0.0]


def test_a_run_that_measured_nothing_is_readable(document: dict[str, Any]) -> None:
    """Null durations and empty series are what the client writes when nothing completed."""
    for key in ("duration_ns", "qps", "tps"):
        document[key] = None
    for key in ("ttft", "tpot", "latency", "output_sequence_lengths"):
        document[key] = {}
    document["n_samples_completed"] = 0
    del document["finish_reason_counts"]
    summary = parsed(document)
    assert (summary.duration_s, summary.output_tokens, summary.tpot_ms) == (None, None, {})
    assert summary.finished_normally is None


REQUIRED = [
    "n_samples_issued",
    "n_samples_completed",
    "n_samples_failed",
    "duration_ns",
    "state",
    "complete",
    "ttft",
    "tpot",
    "latency",
    "output_sequence_lengths",
    "run_config",
]


@pytest.mark.parametrize("key", REQUIRED)
def test_a_missing_key_is_named(document: dict[str, Any], key: str) -> None:
    """Each key that a verdict needs is missed by name."""
    del document[key]
    assert any(f"result_summary.json: {key}" in line for line in problems(document))


@pytest.mark.parametrize("wrong", ["40", -1, True, [], {"a": 1}])
@pytest.mark.parametrize("key", ["n_samples_issued", "duration_ns", "qps", "ttft"])
def test_a_wrong_value_is_named(document: dict[str, Any], key: str, wrong: Any) -> None:
    """Numbers as texts, negative numbers and other types are problems at their key."""
    document[key] = {"percentiles": wrong} if key == "ttft" else wrong
    found = problems(document)
    assert all(line.startswith(f"result_summary.json: {key}") for line in found)
    assert found


@pytest.mark.parametrize("value", ["1.5", -1, True])
def test_a_wrong_percentile_is_named(document: dict[str, Any], value: Any) -> None:
    """A percentile that is no number is a problem with its key."""
    document["tpot"]["percentiles"]["90.0"] = value
    assert len(problems(document)) == 1
    assert "tpot: percentiles: 90.0" in problems(document)[0]


@pytest.mark.parametrize("key", ["p90", "nan", "101", "-1", ""])
def test_what_is_no_percentile_is_named(document: dict[str, Any], key: str) -> None:
    """A key outside 0 to 100 is a problem."""
    document["tpot"]["percentiles"][key] = 1.0
    assert len(problems(document)) == 1


def test_all_problems_are_told_at_once(document: dict[str, Any]) -> None:
    """One reading names everything that is wrong."""
    document["state"] = None
    document["n_samples_failed"] = "0"
    document["run_config"]["load_pattern"]["type"] = 3
    assert len(problems(document)) == 3


@pytest.mark.parametrize("document_", [[], 1, None, "x"])
def test_another_kind_of_document_is_a_problem(document_: Any) -> None:
    """A list, a number, null: no summary, no traceback."""
    assert "wanted an object" in problems(document_)[0]
