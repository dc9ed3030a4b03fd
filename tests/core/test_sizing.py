"""Passes are whole, fewest that reach the duration with its margin, from the best rate known."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.sizing import (
    GUESS_MARGIN,
    WINDOW_PASSES,
    Basis,
    Rate,
    Target,
    issue_rate,
    issue_time_s,
    ramp_passes,
    rate_for,
    size,
)

RATES = st.floats(0.001, 1e5, allow_nan=False)


def target(**changes: object) -> Target:
    values: dict[str, object] = {
        "level": 4,
        "rows": 20,
        "min_duration_ms": 600_000,
        "margin": 1.25,
        "min_passes": 1,
        "basis": Basis.MINIMUM,
        "max_point_s": 6 * 3600.0,
    }
    return Target(**(values | changes))  # type: ignore[arg-type]  # of mixed types


@given(
    qps=RATES,
    level=st.integers(1, 4096),
    rows=st.integers(1, 20_000),
    duration_ms=st.integers(0, 2_400_000),
    margin=st.floats(1, 3),
    min_passes=st.integers(1, 9),
    guess=st.booleans(),
    basis=st.sampled_from([None, *Basis]),
)
def test_passes_are_the_fewest_that_reach_the_margin(
    qps: float,
    level: int,
    rows: int,
    duration_ms: int,
    margin: float,
    min_passes: int,
    guess: bool,
    basis: Basis | None,
) -> None:
    """Never below minimum × margin, and one pass fewer would be, unless a floor binds."""
    wanted = target(
        level=level,
        rows=rows,
        min_duration_ms=duration_ms,
        margin=margin,
        min_passes=min_passes,
        basis=basis,
    )
    sizing = size(Rate(qps, "test", guess), wanted)
    assert sizing.passes is not None
    assert sizing.samples == sizing.passes * rows
    assert sizing.issue_time_s is not None
    wanted_s = duration_ms / 1000 * margin * (GUESS_MARGIN if guess else 1)
    assert sizing.issue_time_s >= wanted_s * (1 - 1e-9)
    floor = min_passes
    if sizing.basis is Basis.WINDOWABLE:
        floor = max(floor, ramp_passes(level, rows) + WINDOW_PASSES)
    one_fewer = (sizing.passes - 1) * rows
    assert sizing.passes == floor or issue_time_s(one_fewer, level, qps) < wanted_s * (1 + 1e-9)
    if basis is not None:
        assert sizing.basis is basis
    elif sizing.basis is Basis.WINDOWABLE:
        assert sizing.issue_time_s <= wanted.max_point_s
    assert sizing.issue_time_s == issue_time_s(sizing.samples, level, qps)


@pytest.mark.parametrize(
    ("qps", "changes", "passes", "basis"),
    [
        # 600 s × 1.25 × 2/s = 1500 samples, and 4 to fill the streams = 76 passes of 20
        (2.0, {}, 76, Basis.MINIMUM),
        (2.0, {"basis": None}, 76, Basis.WINDOWABLE),
        (2.0, {"level": 0}, 75, Basis.MINIMUM),
        # answers of 400 s at 64: 1,200 s × 1.25 × 0.16/s = 240 samples, and 64
        (0.16, {"level": 64, "rows": 1, "min_duration_ms": 1_200_000}, 304, Basis.MINIMUM),
        # one pass of 13,368 at 1.5/s takes 2.5 h: a window of 6 passes would take 14.9 h
        (1.5, {"rows": 13_368, "level": 1, "basis": None}, 1, Basis.MINIMUM),
        (1.5, {"rows": 13_368, "level": 1, "basis": Basis.WINDOWABLE}, 6, Basis.WINDOWABLE),
        # 1,200 s × 1.25 × 90/s = 135,000 samples, and 256 = 11 passes of 13,368
        (
            90.0,
            {"rows": 13_368, "level": 256, "basis": None, "min_duration_ms": 1_200_000},
            11,
            Basis.WINDOWABLE,
        ),
        # the ramp alone takes 2 × 64 / 16 = 8 passes
        (
            100.0,
            {"rows": 16, "level": 64, "basis": None, "min_duration_ms": 1},
            13,
            Basis.WINDOWABLE,
        ),
    ],
)
def test_hand_computed_cases(
    qps: float, changes: dict[str, object], passes: int, basis: Basis
) -> None:
    """The cases of docs/sizing.md."""
    sizing = size(Rate(qps, "test", guess=False), target(**changes))
    assert (sizing.passes, sizing.basis) == (passes, basis)


def test_without_rows_nothing_is_counted_and_without_a_rate_the_fewest_passes_are_planned() -> None:
    assert size(Rate(1, "x", guess=False), target(rows=None)).samples is None
    unknown = size(None, target(min_passes=2))
    assert (unknown.passes, unknown.samples, unknown.issue_time_s) == (2, 40, None)
    assert "not known" in unknown.why


def test_why_a_point_is_as_long_as_it_is() -> None:
    rate = Rate(1.5, "test", guess=False)
    assert size(rate, target()).why == "minimum duration"
    short = target(min_duration_ms=1)
    assert size(rate, short).why == "fewest passes"
    window = target(basis=Basis.WINDOWABLE, min_duration_ms=1)
    assert size(rate, window).why == "steady-state window"
    too_long = target(basis=None, rows=13_368, level=1)
    assert size(rate, too_long).why == "fewest passes; a window would take 14.9 h"


@pytest.mark.parametrize(
    ("issued", "level", "span_s", "qps", "rate"),
    [
        (960, 64, 10.0, 80.0, 89.6),  # 896 requests followed a completion in 10 s
        (64, 64, 0.001, 25.0, 25.0),  # all issued at once: only completions tell
        (100, 64, 0.5, 25.0, 25.0),  # hardly more than the streams
        (40, 1, 0.0, 3.0, 3.0),
        (40, 1, 10.0, 3.0, 3.9),
        (64, 64, 0.0, 0.0, None),
        (64, 64, 0.0, math.inf, None),
        (64, 64, 0.0, math.nan, None),
    ],
)
def test_the_rate_of_a_closed_loop_is_that_of_its_further_requests(
    issued: int, level: int, span_s: float, qps: float, rate: float | None
) -> None:
    assert issue_rate(issued, level, span_s, qps) == rate


@given(
    level=st.integers(1, 512),
    rounds=st.integers(2, 50),
    latency_s=st.floats(0.01, 600),
)
def test_the_issue_time_is_the_inverse_of_the_rate(
    level: int, rounds: int, latency_s: float
) -> None:
    """A loop whose answers take `latency_s` issues `level` at once, then `level` a latency."""
    rate = issue_rate(level * rounds, level, latency_s * (rounds - 1), 1.0)
    assert rate == pytest.approx(level / latency_s)
    assert rate is not None
    assert issue_time_s(level * rounds, level, rate) == pytest.approx(latency_s * (rounds - 1))


def at(rates: dict[int, float]) -> dict[int, Rate]:
    return {level: Rate(qps, "measured at this level", guess=False) for level, qps in rates.items()}


@pytest.mark.parametrize(
    ("level", "measured", "expected", "rate"),
    [
        (8, {8: 5.0, 16: 9.0}, {8: 1.0}, Rate(5.0, "measured at this level", guess=False)),
        (8, {16: 8.0}, {8: 1.0}, Rate(4.0, "from measured level 16", guess=True)),
        (8, {4: 2.0, 16: 8.0}, {}, Rate(4.0, "from measured level 4 and 16", guess=True)),
        (32, {16: 8.0}, {}, Rate(8.0, "from measured level 16", guess=True)),
        (8, {}, {8: 1.0}, Rate(1.0, "run.expected_qps", guess=True)),
        (8, {}, {4: 2.0, 16: 8.0}, Rate(4.0, "run.expected_qps, interpolated", guess=True)),
    ],
)
def test_the_best_source_of_a_rate_comes_first_and_is_named(
    level: int, measured: dict[int, float], expected: dict[int, float], rate: Rate
) -> None:
    found = rate_for(level, at(measured), expected)
    assert found is not None
    assert (round(found.qps, 9), found.source, found.guess) == (rate.qps, rate.source, rate.guess)


def test_without_any_rate_there_is_none() -> None:
    assert rate_for(8, {}, {}) is None


@given(low=st.integers(1, 100), gap=st.integers(2, 1000), rate=RATES, ratio=st.floats(1, 50))
def test_an_interpolated_rate_lies_between_its_neighbours(
    low: int, gap: int, rate: float, ratio: float
) -> None:
    known = at({low: rate, low + gap: rate * ratio})
    between = [rate_for(level, known, {}) for level in range(low, low + gap + 1)]
    values = [found.qps for found in between if found]
    assert all(a <= b * (1 + 1e-9) for a, b in pairwise(values))
