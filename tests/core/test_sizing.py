"""Passes are whole, fewest that reach the duration with its margin, from the best rate known."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.sizing import GUESS_MARGIN, Rate, passes_for, rate_for

RATES = st.floats(0.001, 1e5, allow_nan=False)


@given(
    qps=RATES,
    rows=st.integers(1, 20_000),
    duration_ms=st.integers(0, 2_400_000),
    margin=st.floats(1, 3),
    min_passes=st.integers(1, 9),
    guess=st.booleans(),
)
def test_passes_are_the_fewest_that_reach_the_margin(
    qps: float, rows: int, duration_ms: int, margin: float, min_passes: int, guess: bool
) -> None:
    sizing = passes_for(Rate(qps, "test", guess), rows, duration_ms, margin, min_passes)
    assert sizing.passes is not None
    assert sizing.samples == sizing.passes * rows
    wanted_s = duration_ms / 1000 * margin * (GUESS_MARGIN if guess else 1)
    assert sizing.passes * rows / qps >= wanted_s * (1 - 1e-9)
    assert sizing.passes == min_passes or (sizing.passes - 1) * rows / qps < wanted_s


def test_without_rows_nothing_is_counted_and_without_a_rate_the_fewest_passes_are_planned() -> None:
    assert passes_for(Rate(1, "x", guess=False), None, 1000, 1.25, 1).samples is None
    unknown = passes_for(None, 20, 600_000, 1.25, 2)
    assert (unknown.passes, unknown.samples, unknown.issue_time_s) == (2, 40, None)


@pytest.mark.parametrize(
    ("level", "measured", "expected", "rate"),
    [
        (8, {8: 5.0, 16: 9.0}, {8: 1.0}, Rate(5.0, "measured at this level", guess=False)),
        (8, {16: 9.0}, {8: 1.0}, Rate(1.0, "run.expected_qps", guess=True)),
        (8, {4: 2.0, 16: 8.0}, {}, Rate(4.0, "from measured level 4 and 16", guess=True)),
        (8, {16: 8.0}, {}, Rate(4.0, "from measured level 16", guess=True)),
        (32, {16: 8.0}, {}, Rate(8.0, "from measured level 16", guess=True)),
        (8, {}, {4: 2.0, 16: 8.0}, Rate(4.0, "run.expected_qps, interpolated", guess=True)),
    ],
)
def test_the_best_source_of_a_rate_comes_first_and_is_named(
    level: int, measured: dict[int, float], expected: dict[int, float], rate: Rate
) -> None:
    found = rate_for(level, measured, expected)
    assert found is not None
    assert (round(found.qps, 9), found.source, found.guess) == (rate.qps, rate.source, rate.guess)


def test_without_any_rate_there_is_none() -> None:
    assert rate_for(8, {}, {}) is None


@given(low=st.integers(1, 100), gap=st.integers(2, 1000), rate=RATES, ratio=st.floats(1, 50))
def test_an_interpolated_rate_lies_between_its_neighbours(
    low: int, gap: int, rate: float, ratio: float
) -> None:
    known = {low: rate, low + gap: rate * ratio}
    between = [rate_for(level, known, {}) for level in range(low, low + gap + 1)]
    values = [found.qps for found in between if found]
    assert all(a <= b * (1 + 1e-9) for a, b in pairwise(values))
