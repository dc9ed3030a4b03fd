"""What a campaign costs: hand-computed cases, the ones of docs/sizing.md."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from core.campaign import Campaign
from core.errors import InputError
from core.estimate import (
    BYTES_PER_CHUNK,
    BYTES_PER_SAMPLE,
    Costs,
    Estimate,
    PointEstimate,
    Span,
    as_plain,
    cheapest_hours,
    estimate,
    first_costs,
    learned_costs,
    over_budget,
    refuse_small_budget,
    scored_samples,
)
from core.plan import Plan, make_plan, resized
from core.records import AttemptRecord, FolderRecord, Owner, PointRecord
from core.sizing import Rate
from core.status import AttemptState
from tests.campaigns import make_campaign

LISTED = {"c_max": 64, "levels": [1, 2, 4, 8, 16, 32, 64]}
#: Sizes only for the minimum duration, without a pilot.
PLAIN = {"basis": "minimum", "pilot": {"enabled": False}}
COSTS = Costs(overhead_s=20.0, accuracy_factor=1.5, bytes_per_sample=Span.exact(1000), learned=True)
SCORED = 300
IDS = count(1)


def planned(rows: int | None = 100, **sections: Any) -> tuple[Campaign, Plan]:
    campaign = make_campaign(**{"curve": LISTED, "run": PLAIN, **sections})
    return campaign, make_plan(campaign, rows)


def known(campaign: Campaign, plan: Plan, rates: dict[int, float]) -> Plan:
    measured = {level: Rate(qps, "measured", guess=False) for level, qps in rates.items()}
    return resized(campaign, plan, measured)


def of(label: str, campaign: Campaign, plan: Plan, costs: Costs = COSTS) -> PointEstimate:
    found = estimate(campaign, plan, costs, scored=SCORED, labels=[label])
    (point,) = found.points
    assert found.wall_s == point.wall_s
    return point


def test_a_point_with_a_known_rate_costs_exactly_so_much() -> None:
    """600 s × 1.25 × 2/s + 2 = 1,502 → 1,600 samples: 800 s, and 20 s beside the load."""
    campaign, plan = planned()
    point = of("c0002", campaign, known(campaign, plan, {2: 2.0}))
    assert not next(p for p in plan.points if p.label == "c0002").accuracy
    assert point.wall_s == Span.exact(820.0)
    assert point.disk_bytes == Span.exact(1_600_000)


def test_an_accuracy_run_takes_its_samples_at_the_rate_of_the_point() -> None:
    """1,200 s × 1.25 × 10/s + 64 → 15,100 samples: 1,510 s; 1.5 × 300 / 10 = 45 s; 20 s."""
    campaign, plan = planned()
    point = of("c0064", campaign, known(campaign, plan, {64: 10.0}))
    assert point.wall_s == Span.exact(1510 + 45 + 20)
    assert point.disk_bytes == Span.exact((15_100 + 300) * 1000)


def test_a_guessed_rate_gives_a_range_that_never_falls_below_the_minimum() -> None:
    """600 s × 1.25 × 1.5 × 1/s + 2 → 1,200 samples, 1,200 s: from 600 s to 2,400 s."""
    campaign, plan = planned(run={**PLAIN, "expected_qps": {2: 1.0}})
    assert of("c0002", campaign, plan).wall_s == Span(620.0, 1220.0, 2420.0)
    # 600 s × 1.25 × 1.5 × 0.1/s + 2 → 200 samples, 2,000 s; half of it is above the minimum
    campaign, plan = planned(run={**PLAIN, "expected_qps": {2: 0.1}})
    assert of("c0002", campaign, plan).wall_s == Span(1020.0, 2020.0, 4020.0)


def test_without_a_rate_only_the_least_is_known() -> None:
    """The minimum with its margin, and what a run costs beside its load; disk has no bound."""
    campaign, plan = planned()
    point = of("c0002", campaign, plan)
    assert point.wall_s == Span(770.0, 770.0, None)
    assert point.disk_bytes == Span(100_000, 100_000, None)


def test_a_pilot_is_part_of_the_price_while_the_rate_is_not_known() -> None:
    """60 s and 20 s; at 0.01/s two requests per stream take 2 × 2 / 0.01 = 400 s."""
    without = PLAIN
    for qps, more in [(1.0, Span(80, 80, 80)), (0.01, Span(80, 420, 820))]:
        run = {"basis": "minimum", "expected_qps": {2: qps}}
        campaign, plan = planned(run=run)
        with_pilot = of("c0002", campaign, plan).wall_s
        campaign, plan = planned(run={**without, "expected_qps": {2: qps}})
        assert with_pilot == of("c0002", campaign, plan).wall_s + more
        campaign, plan = planned(run=run)
        exact = of("c0002", campaign, known(campaign, plan, {2: 2.0}))
        assert exact.wall_s == Span.exact(820.0)


def test_accelerator_hours_are_those_of_the_whole_instance() -> None:
    """Two points of 820 s and 800 + 20 s on eight accelerators."""
    campaign, plan = planned(instance={"name": "box", "accelerators": 8})
    found = estimate(
        campaign,
        known(campaign, plan, {1: 2.0, 2: 2.0}),
        COSTS,
        scored=SCORED,
        labels=["c0001", "c0002"],
    )
    assert found.wall_s == Span.exact(1640.0)
    assert found.accelerator_hours.expected == pytest.approx(1640 * 8 / 3600)
    plain = as_plain(found, now=1000.0)
    assert plain["done_at"] == {"low": 2640.0, "expected": 2640.0, "high": 2640.0}
    assert plain["accelerator_hours"]["low"] == pytest.approx(1640 * 8 / 3600)


def test_a_total_without_an_upper_bound_has_none() -> None:
    """One unknown point is enough; what has passed is taken off both ends."""
    total = Span.exact(10) + Span(1, 2, None)
    assert total == Span(11, 12, None)
    assert total.less(11.5) == Span(0, 0.5, None)
    assert Span(1, 2, 3).less(2.5) == Span(0, 0, 0.5)
    assert Span(1, 2, None).times(2) == Span(2, 4, None)
    found = Estimate((), Span.exact(10), Span.exact(0), 1)
    assert found.after(4).wall_s == Span.exact(6)


# --- First guesses ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tokens", "most"), [(128, 128), (None, 1024), ("many", 1024), (0, 1024), (True, 1024)]
)
def test_a_sample_takes_its_record_and_its_chunks(tokens: object, most: int) -> None:
    """730 B and 162 B for each of at most `max_new_tokens`; a value of the wrong kind is none."""
    campaign = make_campaign(client={"overrides": {"model_params": {"max_new_tokens": tokens}}})
    span = first_costs(campaign).bytes_per_sample
    assert (span.low, span.high) == (
        BYTES_PER_SAMPLE + BYTES_PER_CHUNK,
        BYTES_PER_SAMPLE + BYTES_PER_CHUNK * most,
    )
    assert span.low < span.expected < (span.high or 0)


def test_the_stand_in_needs_less_than_the_client() -> None:
    """30 s and 3 s."""
    assert first_costs(make_campaign()).overhead_s == 30
    assert first_costs(make_campaign(rehearsal={"time_scale": 0.1})).overhead_s == 3


def test_scored_samples_count_repeats_of_known_datasets() -> None:
    """Rows from the file, else as stated; a dataset of unknown size counts none."""
    common = {"scorer": {"eval_method": "pass_at_1"}, "targets": {"score": 0.9}}
    thrice = {**common, "scorer": {"eval_method": "pass_at_1", "num_repeats": 3}}
    datasets = {
        "accuracy": [
            {**thrice, "name": "a", "path": "/a.jsonl", "rows": 10},
            {**common, "name": "b", "path": "/b.jsonl"},
        ]
    }
    campaign = make_campaign(datasets=datasets)
    assert scored_samples(campaign, {}) == 30
    assert scored_samples(campaign, {"a": 20, "b": 7}) == 67


# --- Learned costs ---------------------------------------------------------------------------


def attempt(state: AttemptState = AttemptState.VALID, **facts: Any) -> AttemptRecord:
    """An attempt of 1,000 samples at 10/s that took 100 s of load and `beside` seconds more."""
    beside_s, size = facts.pop("beside_s", 20.0), facts.pop("size", 4_000_000)
    values: dict[str, Any] = {
        "id": next(IDS),
        "campaign": "unit",
        "label": "c0002",
        "number": 1,
        "phase": "measure",
        "baseline": 1,
        "state": state,
        "folder": "unit/c0002/attempt-01",
        "planned_samples": 1000,
        "planned_passes": 10,
        "created_at": 1000.0,
        "started_at": 1001.0,
        "ended_at": 1100.0 + beside_s,
        "exit_code": 0,
        "ended_by": "itself",
        "findings": (),
        "metrics": {"issued": 1000, "rate_qps": 10.0},
        "reason": None,
        "owner": Owner("host", "boot", 1, 2),
        "client_version": "1",
        "run_folder": FolderRecord("p", 1.0, size, "0"),
    }
    return AttemptRecord(**(values | facts))


def point(*attempts: AttemptRecord, accuracy: bool = False) -> PointRecord:
    return PointRecord(
        id=1,
        label="c0002",
        position=0,
        concurrency=2,
        region="low_latency",
        role="choice",
        accuracy=accuracy,
        load_pattern="concurrency",
        min_duration_ms=600_000,
        skipped=None,
        baseline=1,
        attempts=attempts,
    )


def test_recorded_attempts_teach_what_runs_cost() -> None:
    """Overhead: the median of 18, 20 and 40 s; accuracy: 30 s for 300 samples at 10/s; sizes."""
    points = [
        point(attempt(beside_s=18)),
        point(attempt(beside_s=40)),
        point(attempt(beside_s=20)),
        point(attempt(beside_s=50, size=5_200_000), accuracy=True),
    ]
    costs = learned_costs(make_campaign(), points, SCORED)
    assert costs == Costs(20.0, 1.0, Span.exact(4000), learned=True)


def test_the_way_to_the_next_attempt_counts_unless_it_was_a_pause() -> None:
    """20 s beside the load, and 5 s to the next attempt of that process; not two minutes."""
    campaign, other = make_campaign(), Owner("host", "boot", 9, 9)
    soon, late = {"created_at": 1125.0}, {"created_at": 1240.0}
    for following, overhead_s in ((soon, 25.0), (late, 20.0), ({**soon, "owner": other}, 20.0)):
        points = [point(attempt()), point(attempt(AttemptState.RUNNING, metrics={}, **following))]
        assert learned_costs(campaign, points, SCORED).overhead_s == overhead_s


def test_what_was_not_seen_stays_the_first_guess() -> None:
    """No point without accuracy: its overhead is not known; no valid attempt: nothing is."""
    campaign = make_campaign()
    first = first_costs(campaign)
    nothing = [
        point(),
        point(attempt(AttemptState.FAILED)),
        point(attempt(phase="pilot", metrics={"rate_qps": 10.0})),
        point(attempt(metrics={"issued": 1000})),
    ]
    assert learned_costs(campaign, nothing, SCORED) == first
    costs = learned_costs(campaign, [point(attempt(beside_s=60.0), accuracy=True)], SCORED)
    assert (costs.overhead_s, costs.accuracy_factor) == (first.overhead_s, 1.0)
    no_folder = [point(attempt(run_folder=None))]
    assert learned_costs(campaign, no_folder, 0).bytes_per_sample == first.bytes_per_sample


# --- Budget ----------------------------------------------------------------------------------


def test_a_budget_below_the_cheapest_legal_curve_is_refused_with_the_sum() -> None:
    """Six points of 750 s and one of 1,500 s, 30 s each beside the load: 1.725 h."""
    campaign, plan = planned(run={**PLAIN, "budget_hours": 1.7})
    assert cheapest_hours(campaign, plan, first_costs(campaign), 0) == pytest.approx(6210 / 3600)
    with pytest.raises(InputError, match=r"run.budget_hours: 1.7 h, .* takes 1.725 h"):
        refuse_small_budget(campaign, plan, 0)
    for enough in (1.73, None):
        run = {**PLAIN, "budget_hours": enough}
        refuse_small_budget(make_campaign(curve=LISTED, run=run), plan, 0)


def test_spares_need_not_fit_the_budget() -> None:
    """The cheapest legal curve has none."""
    campaign = make_campaign(curve={"c_max": 64, "spares": 2}, run=PLAIN)
    plan = make_plan(campaign, 100)
    assert len(plan.points) == 9
    assert cheapest_hours(campaign, plan, replace(COSTS, overhead_s=0), 0) < 7 * 1500 / 3600


def test_a_point_fits_a_budget_up_to_its_last_minute() -> None:
    """By what is expected: 1 h spent and half an hour to come."""
    needed = Span(0, 1800.0, None)
    assert over_budget(1.5, 3600.0, needed) is None
    reason = over_budget(1.49, 3600.0, needed)
    assert reason == "budget: 1.00 h spent, 0.50 h needed, run.budget_hours is 1.49"
