"""Every plan is a legal curve by the official functions; every illegal one is refused with why."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from submission_checker.agentic_targets import get_agentic_targets
from submission_checker.checker import _ALLOWED_MODEL_NAMES
from submission_checker.models.aggregate.context import accuracy_bands, match_accuracy_bands

from core.campaign import AGENTIC_BENCHMARKS, BENCHMARKS, Campaign
from core.errors import InputError
from core.plan import (
    MIN_LEVELS,
    Plan,
    Point,
    Role,
    as_plain,
    band_name,
    make_plan,
    rate_shown,
    resized,
)
from core.regions import MANDATORY_BANDS, uncovered_bands
from core.sizing import Basis, Rate
from tests.campaigns import make_campaign, official

ROWS = 20_000


def tried(campaign: Campaign, rows: int) -> tuple[Plan | None, str]:
    """The plan, or why there is none."""
    try:
        return make_plan(campaign, rows), ""
    except InputError as refusal:
        return None, str(refusal)


def levels(plan: Plan) -> list[int]:
    return [point.concurrency for point in plan.points]


def accuracy(plan: Plan) -> list[int]:
    return sorted(p.concurrency for p in plan.points if p.accuracy and p.offline != "dedicated")


def assert_legal(plan: Plan, campaign: Campaign) -> None:
    """What the official checker asks of a curve at plan time."""
    fixed = [p for p in plan.points if p.offline != "dedicated"]
    assert MIN_LEVELS <= len(fixed) <= len(plan.points) <= 32
    assert len({p.concurrency for p in plan.points}) == len(plan.points)
    assert uncovered_bands([p.concurrency for p in fixed], plan.regions) == []
    elected = campaign.curve.c_max if campaign.offline == "elected" else None
    candidates = [
        (p.concurrency, accuracy_bands(p.concurrency, plan.regions), p.concurrency == elected)
        for p in fixed
        if p.accuracy
    ]
    owners = match_accuracy_bands(sorted(candidates, key=lambda c: c[2]))
    assert set(owners) == set(MANDATORY_BANDS)
    assert sorted(owners.values()) == sorted(c for c, _, _ in candidates)


def test_names_of_benchmarks_are_the_checkers() -> None:
    assert BENCHMARKS == _ALLOWED_MODEL_NAMES
    assert {name for name in BENCHMARKS if get_agentic_targets(name)} == set(AGENTIC_BENCHMARKS)


@settings(max_examples=300, deadline=None)
@given(
    c_max=st.one_of(st.integers(33, 300), st.integers(301, 100_000)),
    c_min=st.integers(1, 32),
    spares=st.integers(0, 24),
    offline=st.sampled_from(["elected", "dedicated"]),
    override=st.booleans(),
)
def test_an_automatic_plan_is_legal_or_refused(
    c_max: int, c_min: int, spares: int, offline: str, override: bool
) -> None:
    curve: dict[str, Any] = {"c_max": c_max, "spares": spares, "offline": offline}
    curve |= {"c_min_override": c_min} if override else {"c_min": c_min}
    campaign = official(curve=curve)
    plan, refusal = tried(campaign, 200_000)
    if plan is None:
        room = c_max - (1 if override else c_min) + 1
        assert room < MIN_LEVELS + spares or c_max <= 34 or "exceed the cap" in refusal
        return
    assert_legal(plan, campaign)
    fixed = [p.concurrency for p in plan.points if p.offline != "dedicated"]
    assert len(fixed) == MIN_LEVELS + spares
    assert (min(fixed), max(fixed)) == (1 if override else c_min, c_max)


@settings(max_examples=300, deadline=None)
@given(
    c_max=st.integers(33, 400),
    wanted=st.lists(st.integers(1, 440), min_size=5, max_size=34),
    offline=st.sampled_from(["elected", "dedicated"]),
    override=st.one_of(st.none(), st.integers(1, 32)),
)
def test_a_listed_plan_is_legal_or_refused(
    c_max: int, wanted: list[int], offline: str, override: int | None
) -> None:
    curve = {"c_max": c_max, "levels": wanted, "offline": offline, "c_min_override": override}
    campaign = official(curve=curve)
    plan, refusal = tried(campaign, ROWS)
    if plan is None:
        assert refusal.strip()
        return
    assert_legal(plan, campaign)
    assert sorted(x for x in levels(plan) if x != ROWS) == sorted(wanted)


def test_levels_spread_evenly_in_log2_with_points_at_one_and_at_c_max() -> None:
    plan = make_plan(official(curve={"c_max": 256, "spares": 0}), ROWS)
    assert sorted(levels(plan)) == [1, 3, 5, 12, 27, 104, 256]


@pytest.mark.parametrize(
    ("curve", "wanted"),
    [
        (
            {"c_max": 256, "levels": [1, 4, 6, 16, 64, 128, 256], "c_min_override": 4},
            [4, 6, 16, 256],
        ),
        (
            {"c_max": 35, "levels": [1, 2, 16, 32, 33, 34, 35], "c_min_override": 32},
            [32, 33, 34, 35],
        ),
        ({"c_max": 1024, "levels": [8, 16, 24, 64, 128, 512, 1024]}, [16, 24, 64, 1024]),
    ],
)
def test_known_curves_get_an_accuracy_placement_that_the_checker_passed(
    curve: dict[str, Any], wanted: list[int]
) -> None:
    """The placements are those that were run through the official checker."""
    plan = make_plan(official(curve=curve), ROWS)
    assert_legal(plan, official(curve=curve))
    assert len(accuracy(plan)) == 4
    if curve.get("c_min_override") != 4:
        assert accuracy(plan) == wanted


def test_accuracy_goes_to_the_fastest_points_that_fill_the_bands() -> None:
    """Any of 1–32 fills Ultra Low; the samples take least time at the highest level."""
    plan = make_plan(official(curve={"c_max": 256, "levels": [1, 2, 4, 6, 16, 28, 256]}), ROWS)
    assert accuracy(plan) == [6, 16, 28, 256]
    by_band = {p.band: p.concurrency for p in plan.points if p.band}
    assert by_band["low_concurrency"] == 6
    assert by_band["high_concurrency"] == 256


def test_the_default_order_starts_with_the_boundaries_and_ends_with_spares() -> None:
    plan = make_plan(official(curve={"c_max": 256, "offline": "dedicated", "spares": 2}), ROWS)
    assert levels(plan)[:2] == [256, 1]
    roles = [point.role for point in plan.points][2:]
    assert roles == sorted(roles, key=[Role.MANDATORY, Role.OFFLINE, Role.CHOICE, Role.SPARE].index)
    assert roles.count(Role.SPARE) == 2


@pytest.mark.parametrize(("order", "first"), [("ascending", 1), ("descending", 64), ("listed", 2)])
def test_other_orders(order: str, first: int) -> None:
    curve = {"c_max": 64, "levels": [2, 1, 4, 8, 16, 32, 64]}
    plan = make_plan(make_campaign(curve=curve, run={"order": order}), ROWS)
    assert levels(plan)[0] == first
    if order != "listed":
        assert levels(plan) == sorted(levels(plan), reverse=order == "descending")


def test_a_rehearsal_shortens_every_minimum_and_is_marked() -> None:
    real = make_plan(make_campaign(), ROWS)
    rehearsal = make_plan(make_campaign(rehearsal={"time_scale": 0.01}), ROWS)
    assert (real.time_scale, rehearsal.time_scale) == (None, 0.01)
    for ours, theirs in zip(rehearsal.points, real.points, strict=True):
        assert ours.min_duration_ms == theirs.min_duration_ms / 100
    assert {p.min_duration_ms for p in real.points if p.concurrency > 32} == {1_200_000}
    assert {p.min_duration_ms for p in real.points if p.concurrency <= 32} == {600_000}


def test_agentic_curves_have_their_own_pattern_and_durations() -> None:
    campaign = make_campaign(benchmark="kimi-k3", datasets={"accuracy": []})
    plan = make_plan(campaign, ROWS)
    assert {p.load_pattern for p in plan.points} == {"agentic_inference"}
    assert {p.min_duration_ms for p in plan.points if p.concurrency > 32} == {2_400_000}
    assert not any(p.accuracy or p.offline for p in plan.points)
    assert any("no accuracy dataset" in warning for warning in plan.warnings)


def test_a_dedicated_offline_point_runs_the_whole_dataset_at_once() -> None:
    plan = make_plan(official(curve={"c_max": 256, "offline": "dedicated"}), ROWS)
    point = plan.point("offline")
    assert (point.concurrency, point.load_pattern) == (ROWS, "max_throughput")
    assert (point.region, point.role, point.accuracy) == ("submitters_choice", Role.OFFLINE, True)
    assert point.min_duration_ms == 0  # beyond the margin the checker asks none
    assert plan.point("c0256").offline is None


def test_a_dedicated_offline_run_has_neither_window_nor_streams_to_fill() -> None:
    """Its burst is sized to its own minimum: 1,200 s × 1.25 × 1.5 × 1/s in passes of 256."""
    curve = {"c_max": 250, "offline": "dedicated"}
    run = {"expected_qps": {256: 1.0}, "basis": "windowable"}
    point = make_plan(official(curve=curve, run=run), 256).point("offline")
    assert point.min_duration_ms == 1_200_000
    assert (point.sizing.passes, point.sizing.basis) == (9, Basis.MINIMUM)


def test_conversations_have_no_streams_to_fill() -> None:
    """Sizes of agentic points count conversations, and rates conversations a second."""
    run = {"expected_qps": {64: 0.1}, "basis": "minimum"}
    campaign = make_campaign(benchmark="kimi-k3", datasets={"accuracy": []}, run=run)
    sizing = make_plan(campaign, 50).point("c0064").sizing
    assert sizing.samples == 450  # 2,400 s × 1.25 × 1.5 × 0.1/s


def test_a_run_shows_its_rate_in_the_unit_of_its_size() -> None:
    """Of a closed loop its further requests, of a burst its completions, else conversations."""

    def shown(
        point: Point, planned: int, issued: int, span_s: float | None, qps: float | None
    ) -> float | None:
        return rate_shown(point, planned=planned, issued=issued, issue_span_s=span_s, qps=qps)

    loop = make_plan(make_campaign(), ROWS).point("c0064")
    assert shown(loop, 640, 640, 57.6, 9.0) == 10.0
    assert shown(loop, 640, 640, None, 9.0) is None
    burst = make_plan(official(curve={"c_max": 250, "offline": "dedicated"}), 256).point("offline")
    assert shown(burst, 512, 512, 0.01, 9.0) == 9.0
    assert shown(burst, 512, 512, 0.01, None) is None
    agentic = make_campaign(benchmark="kimi-k3", datasets={"accuracy": []})
    talk = make_plan(agentic, ROWS).point("c0064")
    assert shown(talk, 600, 12_000, 3000.0, 4.0) == 0.2
    assert shown(talk, 600, 1, 0.0, 4.0) is None


def test_levels_above_the_rows_of_the_dataset_are_told() -> None:
    """Legal, but one pass does not even fill the streams."""
    plan = make_plan(make_campaign(), 50)
    (warning,) = [warning for warning in plan.warnings if "rows" in warning]
    assert "50 rows, fewer than the concurrency of c0064" in warning
    assert not any("rows" in warning for warning in make_plan(make_campaign(), 64).warnings)


def test_a_pilot_on_performance_samples_is_refused() -> None:
    """They are forbidden outside the timed phase unless salted."""
    campaign = make_campaign(run={"pilot": {"dataset": "/data/perf.jsonl"}})
    with pytest.raises(InputError, match=r"run\.pilot\.dataset: .*perf\.jsonl is the performance"):
        make_plan(campaign, ROWS)


def test_expected_rates_size_the_points() -> None:
    plan = make_plan(make_campaign(run={"expected_qps": {64: 100.0}}), 1000)
    sizing = plan.point("c0064").sizing
    assert sizing.samples == 226_000  # 1,200 s × 1.25 × 1.5 (a guess) × 100/s + 64, whole passes
    assert make_plan(make_campaign(), None).point("c0064").sizing.samples is None


LISTED = {"c_max": 64, "levels": [1, 2, 4, 8, 16, 32, 64]}


@pytest.mark.parametrize(
    ("sections", "rows", "said"),
    [
        ({"curve": {"c_max": 32}}, ROWS, "c_max: 32 must be above 32"),
        ({"curve": {"c_max": 64, "c_min": 33}}, ROWS, "c_min: 33 must be 32 or lower"),
        ({"curve": {"c_max": 33, "levels": [31, 32, 33, 34, 35, 36, 37]}}, ROWS, "region is empty"),
        ({"curve": {"c_max": 33, "levels": [32, 33, 34, 35, 36, 37, 30]}}, ROWS, "no point in the"),
        ({"curve": {"c_max": 34, "c_min_override": 32}}, ROWS, "region is empty"),
        ({"curve": {"c_max": 64, "levels": [1, 2, 4, 8, 16, 64]}}, ROWS, "6 levels, at least 7"),
        (
            {"curve": {"c_max": 64, "levels": [*range(1, 33), 64]}},
            ROWS,
            "33 points, at most 32",
        ),
        ({"curve": {"c_max": 64, "spares": 25, "offline": "dedicated"}}, ROWS, "exceed the cap"),
        ({"curve": {"c_max": 33, "c_min": 32}}, ROWS, "only 2 levels exist from 32 to 33"),
        (
            {"curve": LISTED | {"levels": [1, 2, 2, 8, 16, 32, 64, 5, 6]}},
            ROWS,
            "2 listed more than",
        ),
        (
            {"curve": LISTED | {"levels": [1, 2, 4, 8, 16, 32, 60]}},
            ROWS,
            "a point at exactly c_max",
        ),
        ({"curve": LISTED | {"levels": [1, 2, 4, 8, 16, 64, 72]}}, ROWS, "72 above the margin"),
        ({"curve": LISTED | {"levels": [1, 2, 3, 4, 5, 40, 64]}}, ROWS, "no point in the Medium"),
        ({"curve": LISTED | {"c_min": 2}}, ROWS, "c_min: 2 is not the lowest"),
        ({"curve": {"c_max": 64, "offline": "dedicated"}}, 63, "at least c_max = 64 rows"),
        ({"curve": {"c_max": 64, "offline": "dedicated"}}, None, "set datasets.performance.rows"),
        ({"curve": {"c_max": 64, "offline": "dedicated"}}, 64, "refuses such duplicates"),
    ],
)
def test_a_curve_that_cant_be_legal_is_refused(
    sections: dict[str, Any], rows: int | None, said: str
) -> None:
    with pytest.raises(InputError, match=said.replace("(", r"\(")):
        make_plan(make_campaign(**sections), rows)


def test_offline_none_is_refused_on_official_single_turn_benchmarks_only() -> None:
    none = {"c_max": 64, "offline": "none"}
    with pytest.raises(InputError, match="rejects a single-turn curve without"):
        make_plan(official(curve=none), ROWS)
    plan = make_plan(make_campaign(curve=none), ROWS)
    assert any("no Offline point" in warning for warning in plan.warnings)


def test_offline_is_refused_on_agentic_curves() -> None:
    with pytest.raises(InputError, match="agentic curve may have no Offline"):
        make_plan(make_campaign(curve={"c_max": 64, "agentic": True, "offline": "elected"}), ROWS)


def test_an_unsalted_warm_up_is_refused_and_an_undrained_one_is_noted() -> None:
    """The client's warm-up sends performance samples."""

    def plan(**warmup: bool) -> Plan:
        overrides = {"settings": {"warmup": warmup}}
        return make_plan(make_campaign(client={"overrides": overrides}), ROWS)

    with pytest.raises(InputError, match="unsalted"):
        plan(enabled=True)
    assert any("not drained" in note for note in plan(enabled=True, salt=True).warnings)
    assert not any("drain" in note for note in plan(enabled=True, salt=True, drain=True).warnings)


def test_all_reasons_come_at_once() -> None:
    curve = {"c_max": 20, "levels": [1, 2, 2], "c_min": 5}
    with pytest.raises(InputError) as refusal:
        make_plan(make_campaign(curve=curve), ROWS)
    text = str(refusal.value)
    assert all(piece in text for piece in ("c_max: 20", "2 listed", "2 levels", "not the lowest"))


def test_warnings_name_what_is_legal_but_unwise(tmp_path: Any) -> None:
    registry = tmp_path / "sets.yaml"
    registry.write_text(
        "seed_sets: [{id: A, scheduler_rng_seed: 1, sample_index_rng_seed: 2, model_seed: 3}]"
    )
    campaign = make_campaign(
        curve={"c_max": 70, "levels": [1, 2, 4, 8, 16, 32, 64], "offline": "none"},
        seeds={"registry": str(registry)},
    )
    text = " ".join(make_plan(campaign, ROWS).warnings)
    for piece in ("no point at exactly c_max", "no spare", "names no cohorts", "no Offline"):
        assert piece in text


def test_a_margin_point_covers_nothing_and_says_so() -> None:
    curve = {"c_max": 64, "levels": [1, 2, 4, 8, 16, 64, 70]}
    point = make_plan(make_campaign(curve=curve), ROWS).point("c0070")
    assert (point.region, point.accuracy) == ("margin", False)
    assert "covers no region" in point.purpose


def test_measured_rates_resize_a_plan_and_change_nothing_else() -> None:
    campaign = make_campaign()
    plan = make_plan(campaign, 64)
    measured = {64: Rate(100.0, "measured at this level", guess=False)}
    sized = resized(campaign, plan, measured)
    # 1,200 s × 1.25 × 100/s + 64, whole passes
    assert sized.point("c0064").sizing.samples == 150_080
    assert [replace(p, sizing=plan.point(p.label).sizing) for p in sized.points] == list(
        plan.points
    )


def test_the_basis_can_differ_by_region() -> None:
    run = {"expected_qps": {1: 1.0, 64: 50.0}, "basis": {"high": "windowable", "low": "minimum"}}
    plan = make_plan(make_campaign(run=run), 100_000)
    assert plan.point("c0064").sizing.basis is Basis.WINDOWABLE
    assert plan.point("c0004").sizing.basis is Basis.MINIMUM
    assert "a window would take" in plan.point("c0001").sizing.why


def test_the_plain_form_is_versioned_and_names_the_seed_set() -> None:
    """Seeds exceed what a JSON reader keeps exact."""
    form = as_plain(make_plan(make_campaign(), 64))
    assert (form["version"], form["seed_set"]) == (1, "A")
    assert "10487924139932647040" not in json.dumps(form)


def test_names_of_bands() -> None:
    assert (band_name("low_latency"), band_name("margin"), band_name(None)) == (
        "Ultra Low",
        "margin",
        "–",
    )


def test_an_override_has_a_point_of_its_own() -> None:
    """§5.4, c-min-override: listed, or put there where levels are found by themselves."""
    curve: dict[str, Any] = {"c_max": 256, "c_min_override": 7}
    levels = [1, 4, 16, 32, 64, 128, 256]
    with pytest.raises(InputError, match=r"no point has level 7 .*c-min-override"):
        make_plan(make_campaign(curve={**curve, "levels": levels}), ROWS)
    for lowest in (1, 6, 7):
        plan = make_plan(make_campaign(curve={**curve, "c_min": lowest}), ROWS)
        assert {lowest, 7, 256} <= {point.concurrency for point in plan.points}
        assert len(plan.points) == 8
