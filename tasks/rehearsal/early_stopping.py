"""Percentile estimates that hold with 99 % confidence, by counting (MLPerf early stopping).

The t-th highest of n values is an upper bound of the p-th percentile with confidence c if at
most t of n values exceeding it would be a coincidence: P(Binomial(n, 1 - p) <= t) < 1 - c. The
estimate is the bound with the largest such t; below a minimum n there is none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

#: Confidence of every estimate, a share (MLPerf LoadGen's constant).
CONFIDENCE = 0.99
#: Percentiles below the median get no estimate: a bound of the tail says nothing there.
LOWEST_PERCENTILE = 50.0


@dataclass(frozen=True)
class Estimate:
    """The estimate of one percentile, and what it rests on."""

    value: float | None
    empirical: float | None
    count: int
    #: Number of values below which there is no estimate.
    min_count: int
    #: Values above the estimate.
    discarded: int


def estimate(ordered: Sequence[float], percentile: float) -> Estimate:
    """Return the estimate for values in ascending order.

    Args:
        ordered: The values, ascending.
        percentile: 50 or more and below 100.
    """
    count = len(ordered)
    share = percentile / 100
    empirical = ordered[int(share * (count - 1))] if count else None
    exceeding = _largest_exceeding(count, 1 - share)
    value = ordered[count - exceeding] if exceeding else None
    discarded = max(0, exceeding - 1)
    return Estimate(value, empirical, count, _min_count(1 - share), discarded)


def _largest_exceeding(count: int, tail: float) -> int:
    """Return the largest t of 1 or more with P(Binomial(count, tail) <= t) < 1 - confidence."""
    probability = 0.0
    for exceeding in range(count):
        probability += _binomial(count, exceeding, tail)
        if probability >= 1 - CONFIDENCE:
            return exceeding - 1 if exceeding > 1 else 0
    return 0


def _binomial(count: int, hits: int, chance: float) -> float:
    ways = math.lgamma(count + 1) - math.lgamma(hits + 1) - math.lgamma(count - hits + 1)
    odds = hits * math.log(chance) + (count - hits) * math.log1p(-chance)
    return math.exp(ways + odds)


def _min_count(tail: float) -> int:
    """Return the smallest count for which at most one exceeding value is a coincidence."""
    low, high = 1, 2
    while _at_most_one(high, tail) >= 1 - CONFIDENCE:
        low, high = high, high * 2
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _at_most_one(middle, tail) < 1 - CONFIDENCE else (middle, high)
    return high


def _at_most_one(count: int, tail: float) -> float:
    return _binomial(count, 0, tail) + _binomial(count, 1, tail)
