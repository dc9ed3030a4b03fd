"""The list of campaigns: paged, and each as its own page would show it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.plan import Plan
from core.records import Owner, Phase, Records
from core.records import campaigns as module
from core.status import AttemptState, PointState


def test_each_campaign_is_listed_as_it_stands(
    records: Records, enter, plan: Plan, owner: Owner
) -> None:
    """States are those of the points themselves: pilots, skips and rebases counted alike."""
    for name in ("one", "two", "three"):
        enter(plan=replace(plan, campaign=name))
    labels = [point.label for point in plan.points]
    end(records, owner, "one", labels[0], AttemptState.FAILED, AttemptState.VALID)
    end(records, owner, "one", labels[1], AttemptState.INTERRUPTED)
    records.skip_point("one", labels[2], "budget")
    pilot = records.new_attempt("one", labels[3], owner=owner, phase=Phase.PILOT)
    records.change_state(pilot.id, AttemptState.RUNNING)
    end(records, owner, "two", labels[0], AttemptState.VALID)
    records.rebase("two", "new driver")
    listed = records.listing()
    assert [one.campaign.name for one in listed] == ["three", "two", "one"]
    for one in listed:
        points = records.points_with_attempts(one.campaign.name)
        assert one.states == tuple(point.state for point in points)
    assert listed[2].states[:3] == (PointState.VALID, PointState.INTERRUPTED, PointState.SKIPPED)
    assert [one.last_at is None for one in listed] == [True, True, False]


def end(records: Records, owner: Owner, name: str, label: str, *states: AttemptState) -> None:
    """Attempts at a point that ended so."""
    for state in states:
        attempt = records.new_attempt(name, label, owner=owner)
        records.change_state(attempt.id, AttemptState.RUNNING)
        records.change_state(attempt.id, state)


def test_a_long_list_comes_in_pages(
    records: Records, enter, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (records.pages(), records.listing()) == (1, ())
    monkeypatch.setattr(module, "PAGE_SIZE", 2)
    for number in range(5):
        enter(plan=replace(plan, campaign=f"c{number}"))
    pages = [[one.campaign.name for one in records.listing(page)] for page in (1, 2, 3, 4)]
    assert records.pages() == 3
    assert pages == [["c4", "c3"], ["c2", "c1"], ["c0"], []]
