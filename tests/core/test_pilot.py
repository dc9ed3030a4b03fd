"""A pilot: the point's own configuration with other samples, and the rate that it shows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.campaign import Campaign
from core.client_config import TEMPLATES
from core.folder import FolderFacts
from core.pilot import (
    SAMPLES,
    is_enough,
    pilot_config,
    pilot_dataset,
    pilot_note,
    pilot_rate,
    scaled_s,
)
from core.plan import Point, make_plan
from core.summary import Summary
from tasks.collect import collect
from tests.campaigns import make_campaign, official
from tests.core.test_client_config import AUGUST


def point_of(campaign: Campaign, label: str = "c0064", rows: int = 100) -> Point:
    return make_plan(campaign, rows).point(label)


def dataset_of(**sections: Any) -> dict[str, Any] | None:
    campaign = make_campaign(**sections)
    return pilot_dataset(campaign, point_of(campaign))


def test_accuracy_samples_are_sent_unless_others_are_named() -> None:
    """As performance samples for the client, which is not to score them."""
    found = dataset_of()
    assert found == {"name": "pilot", "type": "performance", "path": "/data/acc.jsonl"}
    named = dataset_of(
        run={"pilot": {"dataset": "/data/other.jsonl"}},
        datasets={"performance": {"settings": {"parser": {"input": "q"}}}},
    )
    assert named == {
        "name": "pilot",
        "type": "performance",
        "path": "/data/other.jsonl",
        "parser": {"input": "q"},
    }


def test_a_dataset_that_the_client_resolves_keeps_its_name() -> None:
    """There is no file to name."""
    accuracy = [
        {"name": "aime25", "rows": 30, "scorer": {"eval_method": "x"}, "targets": {"score": 0.5}}
    ]
    found = dataset_of(datasets={"accuracy": accuracy})
    assert found == {"name": "aime25", "type": "performance"}


def test_performance_samples_are_never_a_pilots() -> None:
    """An accuracy dataset in the same file is passed over; without another there is no pilot."""
    same = {"path": "/data/perf.jsonl", "scorer": {"eval_method": "rouge"}}
    campaign = official(datasets={"accuracy": [same]})
    assert pilot_dataset(campaign, point_of(campaign)) is None
    assert "name another file in run.pilot.dataset" in (pilot_note(campaign) or "")
    other = {"name": "b", "path": "/data/b.jsonl", "scorer": {"eval_method": "rouge"}}
    campaign = official(datasets={"accuracy": [same, other]})
    found = pilot_dataset(campaign, point_of(campaign))
    assert found is not None
    assert found["path"] == "/data/b.jsonl"
    assert pilot_note(campaign) is None


def test_no_pilot_where_none_is_wanted_or_none_can_be() -> None:
    """Turned off, no samples for it, conversations, and the burst of an Offline run."""
    assert dataset_of(run={"pilot": {"enabled": False}}) is None
    assert dataset_of(datasets={"accuracy": []}) is None
    agentic = make_campaign(benchmark="kimi-k3", datasets={"accuracy": []})
    assert pilot_dataset(agentic, point_of(agentic)) is None
    assert pilot_note(agentic) is None
    dedicated = official(curve={"offline": "dedicated"})
    assert pilot_dataset(dedicated, point_of(dedicated, "offline", rows=64 + 1)) is None


def test_the_configuration_is_the_points_own_with_other_samples() -> None:
    """Level, seeds and parameters stay; nothing is scored; the count is more than any gets to."""
    campaign = make_campaign()
    point = point_of(campaign)
    plan = make_plan(campaign, 100)
    dataset = pilot_dataset(campaign, point)
    assert dataset is not None
    assert point.load_pattern in TEMPLATES
    made = pilot_config(
        AUGUST,
        campaign,
        point,
        dataset=dataset,
        seed_set=plan.seed_set,
        run_folder=Path("/runs/pilot-01/run"),
    )
    assert made["datasets"] == [dataset]
    assert made["name"] == "unit-c0064-pilot"
    assert made["settings"]["load_pattern"]["target_concurrency"] == 64
    assert made["settings"]["runtime"]["n_samples_to_issue"] == SAMPLES
    assert made["report_dir"] == "/runs/pilot-01/run"


@pytest.mark.parametrize(
    ("done", "load_s", "enough"),
    [(127, 60.0, False), (128, 59.9, False), (128, 60.0, True), (128, 1e6, True), (0, 1e6, False)],
)
def test_a_pilot_lasts_its_time_and_two_requests_per_stream(
    done: int, load_s: float, enough: bool
) -> None:
    """Whichever is later."""
    assert is_enough(done, load_s, 64, 60.0) is enough


def test_a_rehearsal_shortens_pilots() -> None:
    """By its time scale."""
    assert scaled_s(make_campaign(), 60.0) == 60.0
    assert scaled_s(make_campaign(rehearsal={"time_scale": 0.01}), 60.0) == 0.6


@pytest.fixture
def facts(fixtures_dir: Path) -> FolderFacts:
    """A recorded run without failures."""
    found, _ = collect(
        fixtures_dir / "c02_both_pass" / "out",
        attempt_started_at=0.0,
        exit_code=0,
        ended_by="itself",
    )
    return found


def test_a_pilot_shows_the_rate_of_its_closed_loop(facts: FolderFacts) -> None:
    """Further requests over the time in which they were issued."""
    summary, events = facts.summary, facts.events
    assert isinstance(summary, Summary)
    assert events is not None
    rate, why = pilot_rate(facts, 1)
    assert rate == pytest.approx((summary.issued - 1) / events.issue_span_s)
    assert why == ""


def test_a_pilot_that_says_nothing_tells_why(facts: FolderFacts) -> None:
    """Failed requests, no results, nothing completed: no rate."""
    summary, events = facts.summary, facts.events
    assert isinstance(summary, Summary)
    assert events is not None
    failing = replace(facts, summary=replace(summary, failed=2))
    assert pilot_rate(failing, 4) == (
        None,
        f"2 of {summary.completed} requests of the pilot failed",
    )
    assert pilot_rate(replace(facts, events=replace(events, failed=1)), 4)[0] is None
    assert pilot_rate(replace(facts, events=None), 4) == (None, "the pilot left no results")
    for qps in (0.0, None, float("inf"), float("nan"), -1.0):
        idle = replace(facts, summary=replace(summary, issued=0, qps=qps))
        assert pilot_rate(idle, 4) == (None, "the pilot completed nothing")
