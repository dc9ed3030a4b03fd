"""What a report tells beside the curve: time spent, and curves over each other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from core.estimate import Span
from core.report import at_equal, ratios, spending
from core.status import AttemptState
from tests.core.test_curve_rows import at, curve_of
from tests.core.test_overview import attempt, point


def lasting(seconds: float | None, state: AttemptState, **facts: Any) -> Any:
    """An attempt that had the instance for a time; None: it still has it."""
    ended_at = None if seconds is None else 1.0 + seconds
    return attempt(1, state, created_at=1.0, ended_at=ended_at, **facts)


def test_time_is_told_by_what_became_of_it() -> None:
    """Valid of the present baseline, pilots, and all else; an open attempt counts until now."""
    points = [
        point(
            lasting(100, AttemptState.FAILED),
            lasting(200, AttemptState.VALID),
            lasting(40, AttemptState.VALID, phase="pilot"),
        ),
        point(lasting(1000, AttemptState.VALID, baseline=0)),
        point(lasting(None, AttemptState.RUNNING)),
    ]
    found = spending(points, Span.exact(5.0), 8, now=11.0)
    assert (found.valid_s, found.lost_s, found.pilot_s) == (200.0, 1110.0, 40.0)
    assert found.total_s == 1350.0
    assert found.accelerator_hours(450.0) == 1.0


def test_without_a_number_of_accelerators_hours_are_not_known() -> None:
    assert spending([], None, None, now=0.0).accelerator_hours(3600.0) is None


def test_ratios_are_over_the_first_campaign_by_region() -> None:
    """Each campaign's best of the region; a region that one of the two lacks has no ratio."""
    high, low = {"region": "high_concurrency"}, {"region": "low_concurrency"}
    first = curve_of(at(32, 100, 50, **high), at(64, 200, 20, **high))
    second = curve_of(at(64, 300, 40, **high), at(2, 20, 80, **low))
    found = ratios([first, second])
    assert list(found) == ["Low", "High"]
    base, other = found["High"]
    assert (base.tps, base.tps_ratio) == (200.0, 1.0)
    assert (other.tps, other.tps_ratio) == (300.0, 1.5)
    assert other.interactivity_ratio == pytest.approx(0.8)
    missing, lonely = found["Low"]
    assert (missing.tps, missing.tps_ratio, lonely.tps, lonely.tps_ratio) == (
        None,
        None,
        20.0,
        None,
    )


def test_curves_are_compared_at_the_same_interactivity() -> None:
    """By their step functions: where the other answers no faster, it delivers nothing."""
    first = curve_of(at(32, 100, 50), at(64, 200, 20))
    second = curve_of(at(64, 300, 25))
    slow, fast = at_equal([first, second])
    assert (slow.interactivity, slow.cells) == (20.0, ((200.0, 1.0), (300.0, 1.5)))
    assert (fast.interactivity, fast.cells) == (50.0, ((100.0, 1.0), (None, None)))


def test_a_curve_without_points_compares_to_nothing() -> None:
    empty = curve_of(replace(point(), attempts=()))
    assert ratios([empty, empty]) == {}
    assert at_equal([empty, empty]) == ()
