"""Percentile estimates agree with MLPerf's published minimum counts and bound what they claim."""

from __future__ import annotations

import math

import pytest

from tasks.rehearsal.early_stopping import estimate

#: Smallest sample counts with an estimate, as the reference client logs them.
MIN_COUNTS = {99.9: 6636, 99.0: 662, 97.0: 219, 95.0: 130, 90.0: 64, 80.0: 31, 75.0: 24, 50.0: 11}


@pytest.mark.parametrize(("percentile", "minimum"), MIN_COUNTS.items())
def test_the_minimum_count_is_the_published_one(percentile: float, minimum: int) -> None:
    """One value fewer gives no estimate; the minimum itself gives the largest value."""
    too_few, enough = list(range(minimum - 1)), list(range(minimum))
    assert estimate(too_few, percentile).value is None
    assert estimate(too_few, percentile).min_count == minimum
    assert estimate(enough, percentile).value == minimum - 1
    assert estimate(enough, percentile).discarded == 0


@pytest.mark.parametrize("count", [40, 1000, 20_000])
def test_the_estimate_is_the_tightest_bound_with_99_percent_confidence(count: int) -> None:
    """Discarding one more value would be a coincidence in 1 % of all runs or more."""
    found = estimate(list(range(count)), 90.0)

    def chance(exceeding: int) -> float:
        return sum(
            math.comb(count, hits) * 0.1**hits * 0.9 ** (count - hits)
            if count <= 1000
            else math.exp(
                math.lgamma(count + 1)
                - math.lgamma(hits + 1)
                - math.lgamma(count - hits + 1)
                + hits * math.log(0.1)
                + (count - hits) * math.log(0.9)
            )
            for hits in range(exceeding + 1)
        )

    if found.value is None:
        assert chance(1) >= 0.01
    else:
        assert chance(found.discarded + 1) < 0.01 <= chance(found.discarded + 2)


def test_no_values_give_no_estimate() -> None:
    assert estimate([], 99.0).value is None
    assert estimate([], 99.0).empirical is None
