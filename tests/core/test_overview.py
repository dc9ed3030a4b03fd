"""The records as rows that people and programs read."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from core.overview import (
    PointRow,
    as_json,
    campaign_state,
    offline_note,
    offline_ratio,
    point_rows,
    valid_attempt,
)
from core.records import AttemptRecord, CampaignRecord, Owner, PointRecord
from core.seeds import SeedSet
from core.status import AttemptState, PointState

METRICS: dict[str, Any] = {
    "issued": 96,
    "issue_span_s": 11.5,
    "duration_s": 12.0,
    "output_tokens": 1200,
    "qps": 8.0,
    "tpot_ms": {"50": 10.0, "90": 20.0},
    "ttft_ms": {"90": 35.0},
    "accuracy_scores": {"accuracy": {"score": 0.95}},
}


def attempt(number: int, state: AttemptState, **facts: Any) -> AttemptRecord:
    """An attempt on record."""
    values: dict[str, Any] = {
        "id": number,
        "campaign": "curve",
        "label": "c0004",
        "number": number,
        "phase": "measure",
        "baseline": 1,
        "state": state,
        "folder": f"curve/c0004/attempt-{number:02d}",
        "planned_samples": 96,
        "planned_passes": 12,
        "created_at": 1.0,
        "started_at": 2.0,
        "ended_at": 14.0,
        "exit_code": 0,
        "ended_by": "itself",
        "findings": (),
        "metrics": {},
        "reason": None,
        "owner": Owner("host", "boot", 1, 2),
        "client_version": "1",
        "run_folder": None,
    }
    return AttemptRecord(**(values | facts))


def point(*attempts: AttemptRecord, label: str = "c0004", level: int = 4) -> PointRecord:
    """A point on record."""
    return PointRecord(
        id=1,
        label=label,
        position=0,
        concurrency=level,
        region="low_concurrency",
        role="mandatory",
        accuracy=True,
        load_pattern="concurrency",
        min_duration_ms=600_000,
        skipped=None,
        baseline=1,
        attempts=attempts,
    )


def campaign(**facts: Any) -> CampaignRecord:
    """A campaign on record."""
    values: dict[str, Any] = {
        "id": 1,
        "name": "curve",
        "text": "campaign: curve",
        "text_sha256": "0",
        "source": "/c.yaml",
        "runs_folder": "/runs",
        "created_at": 1.0,
        "rehearsal": False,
        "time_scale": None,
        "plan": {},
        "c_max": 64,
        "c_min": 1,
        "seed_set": SeedSet("A", 2**63 + 1, 2**63 + 2, 3, ("2026-12-C0",)),
        "flow_run_id": None,
        "wish": None,
        "baseline": 1,
    }
    return CampaignRecord(**(values | facts))


INVALID = attempt(1, AttemptState.INVALID, reason="too-short", metrics={**METRICS, "issued": 8})
VALID = attempt(2, AttemptState.VALID, metrics=METRICS)
RUNNING = attempt(2, AttemptState.RUNNING)


def test_a_valid_point_has_the_numbers_of_its_valid_attempt() -> None:
    """Tokens/s over the whole run, 1000/TPOT P90, TTFT P90, the scores; no reason is left."""
    (row,) = point_rows([point(INVALID, VALID)])
    assert (row.state, row.attempts, row.samples) == (PointState.VALID, 2, 96)
    assert row.system_tps == 100.0
    assert row.tps_per_user == 50.0
    assert row.ttft_p90_ms == 35.0
    assert row.scores == {"accuracy": {"score": 0.95}}
    assert (row.reason, row.folder) == (None, VALID.folder)


def test_a_point_that_is_not_valid_has_no_numbers() -> None:
    """What an unusable attempt measured is not a point of the curve; its reason is told."""
    (row,) = point_rows([point(INVALID)])
    assert row.state is PointState.FAILED
    assert (row.samples, row.system_tps, row.tps_per_user, row.qps) == (None, None, None, None)
    assert (row.reason, row.folder) == ("too-short", INVALID.folder)


def test_a_point_without_attempts() -> None:
    """Pending, with nothing to show."""
    (row,) = point_rows([point()])
    assert (row.state, row.attempts, row.folder, row.reason) == (PointState.PENDING, 0, None, None)
    assert valid_attempt(point()) is None


def test_rows_are_ordered_by_level() -> None:
    """Whatever order the points were run in."""
    rows = point_rows([point(label="c0064", level=64), point(), point(label="c0001", level=1)])
    assert [row.concurrency for row in rows] == [1, 4, 64]


@pytest.mark.parametrize("lacking", ["tpot_ms", "ttft_ms", "output_tokens", "duration_s"])
def test_a_metric_that_is_lacking_is_none(lacking: str) -> None:
    """Older records, or runs without a tokenizer, have fewer metrics."""
    metrics = {name: value for name, value in METRICS.items() if name != lacking}
    (row,) = point_rows([point(attempt(1, AttemptState.VALID, metrics=metrics))])
    assert (row.tps_per_user is None) == (lacking == "tpot_ms")
    assert (row.ttft_p90_ms is None) == (lacking == "ttft_ms")
    assert (row.system_tps is None) == (lacking in ("output_tokens", "duration_s"))


@pytest.mark.parametrize(
    ("attempts", "state"),
    [
        ([(VALID,), (VALID,)], "valid"),
        ([(VALID,), (INVALID, RUNNING)], "running"),
        ([(), ()], "pending"),
        ([(VALID,), ()], "incomplete"),
        ([(INVALID,), ()], "incomplete"),
    ],
)
def test_a_campaign_in_one_word(attempts: list[tuple[AttemptRecord, ...]], state: str) -> None:
    """Valid only if every point is."""
    assert campaign_state([point(*each) for each in attempts]) == state


def test_the_json_form_has_a_version_and_the_mark() -> None:
    """Plain values that survive JSON; seeds go by their set's name."""
    record = campaign(rehearsal=True, time_scale=0.5)
    told = as_json(record, [point(INVALID, VALID), point(label="c0001", level=1)])
    assert json.loads(json.dumps(told)) == told
    assert (told["version"], told["rehearsal"], told["time_scale"]) == (1, True, 0.5)
    assert (told["seed_set"], told["state"]) == ("A", "incomplete")
    assert [row["state"] for row in told["points"]] == ["pending", "valid"]
    assert str(2**63 + 1) not in json.dumps(told)


def offline_rows(offline_tps: float | None, c_max_tps: float | None) -> list[PointRow]:
    """A C_max point at 64, one above it in the margin, and a dedicated Offline run."""
    made = []
    for label, level, role, tps in [
        ("c0064", 64, "mandatory", c_max_tps),
        ("c0070", 70, "choice", 900.0),
        ("offline", 64, "offline", offline_tps),
    ]:
        (row,) = point_rows([replace(point(label=label, level=level), role=role)])
        made.append(replace(row, system_tps=tps))
    return made


@pytest.mark.parametrize(
    ("offline_tps", "c_max_tps", "ratio", "said"),
    [
        (980.0, 1000.0, 0.98, "at least 0.98 × are needed"),
        (979.0, 1000.0, 0.979, "the curve would be rejected"),
        (2000.0, 1000.0, 2.0, "offline has 2.000 × the tokens/s of C_max; at least"),
    ],
)
def test_the_offline_run_is_compared_with_the_c_max_point(
    offline_tps: float, c_max_tps: float, ratio: float, said: str
) -> None:
    """The official checker wants at least 0.98 of its system throughput (§5.7.2)."""
    rows = offline_rows(offline_tps, c_max_tps)
    assert offline_ratio(rows, 64) == ratio
    assert said in (offline_note(rows, 64) or "")


def test_nothing_is_compared_before_both_are_valid() -> None:
    """Nor on a curve without one of them."""
    for pair in [(None, 1000.0), (1000.0, None), (None, None)]:
        assert offline_ratio(offline_rows(*pair), 64) is None
        assert offline_note(offline_rows(*pair), 64) is None
    assert offline_ratio(offline_rows(1.0, 1.0), 65) is None
    assert offline_ratio([], 64) is None
