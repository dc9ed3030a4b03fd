"""A campaign's curve: official quantities, steps without interpolation, frontier, notes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from core.curve import (
    DOMINATED,
    FRONTIER,
    OFFLINE,
    TIED,
    Curve,
    Position,
    Row,
    best_in,
    standings,
    steps,
    throughput_at,
)
from core.curve_rows import make_curve
from core.plan import Role
from core.status import AttemptState
from tests.core.test_overview import METRICS, VALID, attempt, campaign, point

PLAN = {"dataset_rows": 8, "points": [{"label": "c0064", "offline": "elected"}]}


def at(level: int, tps: float, x: float | None, **facts: Any) -> Any:
    """A valid point with a throughput and an interactivity; facts of the point, else metrics."""
    stated = ("label", "role", "region", "load_pattern")
    changes = {key: facts.pop(key) for key in stated if key in facts}
    metrics: dict[str, Any] = {
        **METRICS,
        "accuracy_scores": {},
        "output_tokens": tps * METRICS["duration_s"],
        "tpot_ms": {"90": 1000 / x} if x else {},
        "ttft_ms": {"90": 10.0 + level},
        **facts,
    }
    label = changes.pop("label", f"c{level:04}")
    made = attempt(1, AttemptState.VALID, label=label, metrics=metrics)
    return replace(point(made, label=label, level=level), **changes)


def curve_of(*points: Any, **facts: Any) -> Curve:
    """A curve of these points."""
    return make_curve(campaign(plan=PLAN, **facts), points)


def test_a_row_has_the_official_quantities() -> None:
    """Tokens over duration, 1000 / TPOT P90, TTFT P90, as the checker computes them."""
    curve = curve_of(point(VALID))
    (row,) = curve.rows
    assert (row["system_tps"], row["tps_per_user"], row["ttft_p90_ms"]) == (100.0, 50.0, 35.0)
    assert (row["interactivity"], row["tps_utilization"], row["standing"]) == (50.0, 1.0, FRONTIER)
    assert json.loads(row["scores"]) == {"accuracy": {"score": 0.95}}


def test_only_valid_attempts_of_the_present_baseline_count() -> None:
    """Failed points, and what was measured before a rebase, have no row."""
    failed = point(attempt(1, AttemptState.FAILED, metrics=METRICS), label="c0008", level=8)
    before = replace(point(VALID, label="c0016", level=16), baseline=2)
    curve = curve_of(failed, before)
    assert (curve.rows, curve.placed, curve.offline_tps, curve.notes) == ((), [], None, ())


def test_an_agentic_point_is_placed_by_its_end_to_end_rate() -> None:
    made = at(4, 100, 50, e2e_avg_interactivity=31.0, load_pattern="agentic_inference")
    curve = curve_of(made)
    assert curve.agentic
    (row,) = curve.rows
    assert (row["interactivity"], row["tps_per_user"]) == (31.0, 50.0)


def test_a_dedicated_offline_run_has_no_latency_and_is_the_ceiling() -> None:
    """It has no place on the curve, and counts for the highest throughput."""
    offline = at(1000, 400, 50, label="offline", role=Role.OFFLINE, load_pattern="max_throughput")
    curve = curve_of(at(64, 200, 20), offline)
    assert curve.offline_tps == 400.0
    assert [row["tps_utilization"] for row in curve.rows] == [0.5, 1.0]
    assert [row["standing"] for row in curve.rows] == [FRONTIER, OFFLINE]
    last = curve.rows[1]
    assert {last[of] for of in ("interactivity", "tps_per_user", "ttft_p90_ms")} == {None}
    assert [row["label"] for row in curve.placed] == ["c0064"]


def test_an_elected_point_is_the_ceiling() -> None:
    assert curve_of(at(32, 150, 30), at(64, 200, 20)).offline_tps == 200.0


def test_tokens_per_kw_where_power_is_known() -> None:
    """One decimal place, as the rules report it (§4.5.2)."""
    points = [at(4, 100, 50), at(8, 200, 40)]
    curve = make_curve(campaign(), points, power_kw={"c0008": 3.0})
    assert [row["system_tps_per_kw"] for row in curve.rows] == [None, 66.7]


def test_the_basis_is_the_clients_window_or_says_why_not() -> None:
    block = {"status": "windowable", "verdict": "STEADY STATE"}
    with_window = at(4, 100, 50, steady_state=block)
    short = at(8, 200, 40, issue_span_s=599.0)
    few = at(16, 210, 30)
    few = replace(few, attempts=(replace(few.attempts[0], planned_passes=4),))
    rows = curve_of(with_window, short, few).rows
    assert [(row["basis"], row["coverage"]) for row in rows] == [
        ("steady-state window", "windowable"),
        ("whole run", "insufficient_duration"),
        ("whole run", "insufficient_passes"),
    ]


def test_a_window_found_afterwards_is_told_by_attempt() -> None:
    found = {1: {"status": "insufficient_passes", "verdict": "not found"}}
    curve = make_curve(campaign(), [at(4, 100, 50)], windows=found)
    (row,) = curve.rows
    assert (row["steady_state_status"], row["steady_state_verdict"]) == (
        "insufficient_passes",
        "not found",
    )


# --- Frontier and steps ----------------------------------------------------------------------


def rows_at(*places: tuple[float, float]) -> list[Row]:
    found = zip(places, standings(places), strict=True)
    return [{"interactivity": x, "system_tps": y, "standing": s} for (x, y), s in found]


def test_ties_and_dominated_points_are_told_apart() -> None:
    """A point with one quantity equal and the other lower is dominated, not tied."""
    places: list[Position] = [
        (10.0, 300.0),
        (20.0, 200.0),
        (20.0, 200.0),
        (20.0, 150.0),
        (10.0, 250.0),
        (5.0, 9.0),
    ]
    assert standings(places) == [FRONTIER, TIED, TIED, *[DOMINATED] * 3]


def test_steps_are_never_interpolated() -> None:
    """Between two corners the curve has the throughput of the one that answers faster."""
    corners = steps(rows_at((30.0, 100.0), (10.0, 300.0), (20.0, 200.0), (15.0, 90.0)))
    assert corners == [(10.0, 300.0), (20.0, 200.0), (30.0, 100.0)]
    asked = (0.0, 10.0, 10.1, 19.9, 20.0, 30.0, 30.1)
    delivered = [throughput_at(corners, x) for x in asked]
    assert delivered == [300.0, 300.0, 200.0, 200.0, 200.0, 100.0, None]


def test_tied_points_make_one_corner() -> None:
    assert len(steps(rows_at((20.0, 200.0), (20.0, 200.0)))) == 1


def test_the_best_of_each_region() -> None:
    points = [
        at(1, 10, 90, region="low_latency"),
        at(32, 80, 50, region="high_concurrency"),
        at(64, 100, 40, region="high_concurrency"),
    ]
    curve = curve_of(*points)
    assert best_in(curve, "high_concurrency") == (50.0, 100.0)
    assert best_in(curve, "low_latency") == (90.0, 10.0)
    assert best_in(curve, "margin") == (None, None)


# --- Plausibility ----------------------------------------------------------------------------


def test_throughput_that_falls_before_saturation_is_noted() -> None:
    (note,) = curve_of(at(1, 10, 90), at(4, 40, 80), at(8, 30, 70), at(16, 90, 60)).notes
    assert "c0008: 30.0 tokens/s, less than the 40.0 of c0004" in note


def test_throughput_that_falls_at_the_end_is_saturation() -> None:
    """Beyond the highest throughput a fall is the system's nature; noise is none either."""
    assert curve_of(at(1, 10, 90), at(4, 40, 80), at(8, 30, 70), at(16, 39, 60)).notes == ()
    assert curve_of(at(1, 100, 90), at(4, 99, 80), at(8, 300, 70)).notes == ()


def test_flat_ttft_is_noted() -> None:
    """Over a factor of eight in the level; not over less, and not where it rises."""
    flat = {"ttft_ms": {"90": 20.0}}
    (note,) = curve_of(at(1, 10, 90, **flat), at(8, 40, 80, **flat)).notes
    assert "TTFT P90 is 20.0 to 20.0 ms from level 1 to 8" in note
    assert curve_of(at(2, 10, 90, **flat), at(8, 40, 80, **flat)).notes == ()
    assert curve_of(at(1, 10, 90), at(8, 40, 80)).notes == ()


def test_a_drifting_accuracy_is_noted() -> None:
    """From three results on; a small spread is none."""

    def scored(*scores: float) -> Curve:
        return curve_of(
            *(
                at(2**n, 10 * 2**n, 90 - n, accuracy_scores={"acc": {"score": score}})
                for n, score in enumerate(scores)
            )
        )

    (note,) = scored(0.95, 0.94, 0.90).notes
    assert "acc, score: 0.9 at c0004, 0.95 at c0001" in note
    assert scored(0.95, 0.94, 0.945).notes == ()
    assert scored(0.95, 0.90).notes == ()
