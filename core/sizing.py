"""Measured rate → number of passes: the sample count alone decides how long a point runs (§6.2).

The client has no duration floor for fixed concurrency, so the count is sized from the best rate
known and is always a whole number of passes (§6.4).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

#: Extra margin on the issue time where the rate is a guess; a run that comes out too short costs
#: a whole attempt, one that runs longer only the difference.
GUESS_MARGIN = 1.5


@dataclass(frozen=True)
class Rate:
    """Queries per second expected at a level, and where the number comes from."""

    qps: float
    source: str
    guess: bool


@dataclass(frozen=True)
class Sizing:
    """How many samples a point issues and how long that should take; None where unknown."""

    passes: int | None
    samples: int | None
    rate: Rate | None
    issue_time_s: float | None


def rate_for(
    level: int, measured: Mapping[int, float], expected: Mapping[int, float]
) -> Rate | None:
    """Best known rate at a level: measured there, measured at neighbours, or the user's own.

    Args:
        level: The level to size.
        measured: Level → queries/s measured in this campaign.
        expected: Level → queries/s that the user expects (`run.expected_qps`).
    """
    if level in measured:
        return Rate(measured[level], "measured at this level", guess=False)
    if level in expected:
        return Rate(expected[level], "run.expected_qps", guess=True)
    if measured:
        neighbours = nearest_levels(level, measured)
        source = "from measured level " + " and ".join(map(str, neighbours))
        return Rate(interpolated(level, measured), source, guess=True)
    if expected:
        return Rate(interpolated(level, expected), "run.expected_qps, interpolated", guess=True)
    return None


def nearest_levels(level: int, rates: Mapping[int, float]) -> list[int]:
    """The known levels around a level: one below and one above where they exist."""
    below = [known for known in rates if known < level]
    above = [known for known in rates if known > level]
    return [*([max(below)] if below else []), *([min(above)] if above else [])]


def interpolated(level: int, rates: Mapping[int, float]) -> float:
    """Rate at a level between known ones, linear in log–log.

    Below the known levels the rate is taken as proportional to the level, above them as constant.
    Both err towards the shorter run, which is cheap and measures the rate that was missing.
    """
    around = nearest_levels(level, rates)
    if len(around) == 1:
        (known,) = around
        return rates[known] * min(1.0, level / known)
    low, high = around
    share = math.log(level / low) / math.log(high / low)
    return math.exp((1 - share) * math.log(rates[low]) + share * math.log(rates[high]))


def passes_for(
    rate: Rate | None, rows: int | None, duration_ms: int, margin: float, min_passes: int
) -> Sizing:
    """Smallest whole number of passes whose issue time reaches the duration with the margin.

    Args:
        rate: Rate at the level; None: the fewest passes, to measure one.
        rows: Rows of the performance dataset; None: nothing can be counted yet.
        duration_ms: Minimum issue time, milliseconds.
        margin: Planned over minimum issue time; a guessed rate multiplies it by `GUESS_MARGIN`.
        min_passes: Fewest passes.
    """
    if rows is None:
        return Sizing(passes=None, samples=None, rate=rate, issue_time_s=None)
    if rate is None:
        return Sizing(min_passes, min_passes * rows, rate, issue_time_s=None)
    wanted_s = duration_ms / 1000 * margin * (GUESS_MARGIN if rate.guess else 1.0)
    passes = max(min_passes, math.ceil(wanted_s * rate.qps / rows))
    return Sizing(passes, passes * rows, rate, issue_time_s=passes * rows / rate.qps)
