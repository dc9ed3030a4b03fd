"""What Prefect's pages say, as texts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from core.estimate import estimate, first_costs
from core.overview import PointRow
from core.pages import (
    LAST_LINES,
    artifact_key,
    campaign_percent,
    changes_results,
    chart_page,
    finding_page,
    has_chart,
    is_told,
    last_lines,
    message_of,
    plan_note,
    plan_table,
    result_note,
    result_table,
    shows_findings,
)
from core.plan import make_plan
from core.records import AttemptRecord, EventRecord, Owner
from core.status import AttemptState, PointState
from tests.campaigns import make_campaign

ROW = PointRow(
    label="c0064",
    concurrency=64,
    region="high_concurrency",
    role="mandatory",
    accuracy_planned=True,
    state=PointState.VALID,
    attempts=1,
    samples=128,
    issue_time_s=600.0,
    system_tps=1234.5,
    tps_per_user=20.0,
    ttft_p90_ms=50.0,
    qps=3.0,
    scores={"accuracy": {"score": 0.91}},
    reason=None,
    folder="x/c0064/attempt-01",
)
FAILED = replace(ROW, label="c0128", concurrency=128, state=PointState.FAILED, system_tps=None)
ATTEMPT = AttemptRecord(
    id=7,
    campaign="curve",
    label="c0064",
    number=2,
    phase="measure",
    baseline=1,
    state=AttemptState.FAILED,
    folder="curve/c0064/attempt-02",
    planned_samples=1,
    planned_passes=1,
    created_at=0.0,
    started_at=0.0,
    ended_at=1.0,
    exit_code=1,
    ended_by="watchdog",
    findings=(
        {
            "rule": "failed-requests",
            "severity": "error",
            "seen": "3 requests failed, Bearer abcdefgh12345678",
            "wanted": "none",
            "advice": "look at the endpoint's log",
        },
    ),
    metrics={},
    reason="no progress for 300 s",
    owner=Owner("host", "boot", 1, 1),
    client_version=None,
    run_folder=None,
)


def event(kind: str, **payload: Any) -> EventRecord:
    """A recorded event."""
    return EventRecord(id=1, at=0.0, kind=kind, attempt_id=None, payload=payload)


def test_keys_are_what_prefect_takes() -> None:
    """Lowercase letters, digits and dashes, whatever a campaign is called."""
    assert artifact_key("Llama31_H200", "c0064", "progress") == "llama31-h200-c0064-progress"
    assert artifact_key("_x_") == "x"


def test_a_plan_says_what_each_point_costs_and_all_together() -> None:
    """One row a point in run order; time, accelerator-hours and disk above them."""
    campaign = make_campaign()
    plan = make_plan(campaign, 10)
    costs = estimate(campaign, plan, first_costs(campaign), scored=0)
    rows, note = plan_table(plan, costs), plan_note(plan, costs)
    assert [row["point"] for row in rows] == [point.label for point in plan.points]
    assert all(row["time"] and row["disk"] and row["what it is for"] for row in rows)
    assert "accelerator-hours" in note


@pytest.mark.parametrize("rehearsal", [True, False])
def test_a_rehearsal_is_marked_on_every_page(rehearsal: bool) -> None:
    """And a measurement on none."""
    pages = [
        result_note("curve", [ROW], rehearsal=rehearsal),
        chart_page(b"png", [ROW], rehearsal=rehearsal),
        finding_page(ATTEMPT, [], rehearsal=rehearsal),
    ]
    assert [("REHEARSAL" in str(page)) for page in pages] == [rehearsal] * len(pages)


def test_results_have_a_row_for_each_point() -> None:
    """Numbers where there is a valid attempt, the reason where there is none."""
    rows = result_table([ROW, replace(FAILED, reason="failed-requests")])
    assert [row["tokens/s"] for row in rows] == ["1,234.5", "–"]
    assert [row["why"] for row in rows] == ["", "failed-requests"]
    assert rows[0]["accuracy"] == "score 0.91"
    assert "1 of 2 points are valid" in result_note("curve", [ROW, FAILED], rehearsal=False)


def test_a_chart_begins_with_two_points_and_shows_valid_ones_only() -> None:
    """A picture in the page itself, and the numbers by level."""
    other = replace(ROW, label="c0032", concurrency=32, system_tps=800.0)
    assert [has_chart(rows) for rows in ([ROW, FAILED], [other, ROW])] == [False, True]
    page = chart_page(b"png", [other, ROW, FAILED], rehearsal=False)
    assert "data:image/png;base64,cG5n" in page
    assert page.index("| c0032 | 800.0 |") < page.index("| c0064 | 1,234.5 |")
    assert "c0128" not in page


def test_findings_say_what_to_do_and_show_no_secret() -> None:
    """Rule, seen, wanted, advice, how to go on, and the client's last lines."""
    page = finding_page(ATTEMPT, ["the end```"], rehearsal=False)
    for text in (
        "failed-requests",
        "what to do",
        "look at the endpoint's log",
        "pareto retry curve",
    ):
        assert text in page
    assert "abcdefgh12345678" not in page
    assert page.count("```") == 2


def test_last_lines_are_few_short_and_without_bars_or_secrets() -> None:
    """Whatever the client prints, a page stays small."""
    bar = "performance (Streaming: true):  50%|█████     | 10/20 [00:01<00:01]"
    lines = [f"line {number} {'x ' * 400}" for number in range(200)]
    env = {"MY_TOKEN": "hunter2value", "MINE": "xyz"}
    found = last_lines(["\n".join([*lines, bar, "key=hunter2value xyz"])], env, "MINE")
    assert len(found) == LAST_LINES
    assert max(map(len, found)) <= 300
    assert not any(any(part in line for part in ("|", "hunter2value", "xyz")) for line in found)


def test_progress_is_of_the_time() -> None:
    """The share of the time that is behind; all of nothing is all."""
    assert campaign_percent(30, 10) == 75.0
    assert campaign_percent(0, 0) == 100.0


@pytest.mark.parametrize(
    ("found", "word", "part"),
    [
        (event("point.failed", label="c0064", reason="too-short"), "failed", "too-short"),
        (
            event("drift.found", label="c0064", differences=[{"part": "client", "key": "version"}]),
            "drift",
            "client.version",
        ),
        (event("campaign.finished", not_valid=["c0064"]), "finished", "c0064"),
        (event("campaign.finished", not_valid=[]), "finished", "every point"),
        (event("campaign.stopped", reason="no room"), "finished", "no room"),
        (event("attempt.failed", label="c0064"), "stalled", "no progress"),
    ],
)
def test_what_is_worth_telling(found: EventRecord, word: str, part: str) -> None:
    """Failed points, drift, the end, and a client without progress; with the reason."""
    message = message_of(found, ATTEMPT)
    assert message is not None
    assert message[0] == word
    assert part in message[1]


def test_what_is_not_worth_telling() -> None:
    """A valid point, and an attempt that failed for another reason than a stall."""
    assert message_of(event("point.completed", label="c0064"), ATTEMPT) is None
    crashed = replace(ATTEMPT, ended_by="itself")
    assert message_of(event("attempt.failed", label="c0064"), crashed) is None


def test_events_by_what_they_change() -> None:
    """Looks at the instance are no news; a started attempt changes no result."""
    assert not is_told(event("instance.seen"))
    assert is_told(event("point.completed"))
    assert [changes_results(event(f"attempt.{state}")) for state in AttemptState] == [
        state not in (AttemptState.PREPARED, AttemptState.RUNNING) for state in AttemptState
    ]
    assert [shows_findings(event(f"attempt.{state}")) for state in AttemptState] == [
        state in (AttemptState.INVALID, AttemptState.FAILED) for state in AttemptState
    ]
