"""Measured rate → number of passes: the sample count alone decides how long a point runs (§6.2).

The client has no duration floor for fixed concurrency, so the count is sized from the best rate
known and is always a whole number of passes (§6.4). `docs/sizing.md` derives the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

#: Extra margin on the issue time where the rate is a guess; a run that comes out too short costs
#: a whole attempt, one that runs longer only the difference.
GUESS_MARGIN = 1.5
#: Passes after ramp-up that a steady-state window needs: more than four super-passes (§6.2).
WINDOW_PASSES = 5
#: Requests per concurrent stream until a server is in its steady state: the first answers start
#: together, the second ones spread out.
RAMP_REQUESTS = 2


class Basis(StrEnum):
    """What a point's official numbers can come from."""

    WINDOWABLE = "windowable"  # a steady-state window inside the run
    MINIMUM = "minimum"  # the whole run, ramp-up and drain included


@dataclass(frozen=True)
class Rate:
    """Queries per second at a level, and where the number comes from."""

    qps: float
    source: str
    guess: bool


@dataclass(frozen=True)
class Target:
    """What a point's size must reach."""

    level: int  # concurrent streams; 0 where single requests don't follow each other
    rows: int | None  # of the performance dataset; None: not known yet
    min_duration_ms: int  # of issue time
    margin: float  # planned over minimum issue time
    min_passes: int
    basis: Basis | None  # None: windowable where the point takes at most `max_point_s`
    max_point_s: float


@dataclass(frozen=True)
class Sizing:
    """How many samples a point issues and how long that should take; None where unknown."""

    passes: int | None
    samples: int | None
    rate: Rate | None
    issue_time_s: float | None
    basis: Basis
    why: str  # what decided the count


def rate_for(
    level: int,
    measured: Mapping[int, Rate],
    expected: Mapping[int, float],
) -> Rate | None:
    """Best known rate at a level: measured there, measured at neighbours, or the user's own.

    Args:
        level: The level to size.
        measured: Level → rate from earlier attempts, earlier campaigns and pilots.
        expected: Level → queries/s that the user expects (`run.expected_qps`).
    """
    if level in measured:
        return measured[level]
    known = {at: rate.qps for at, rate in measured.items()}
    if known:
        source = "from measured level " + " and ".join(map(str, nearest_levels(level, known)))
        return Rate(interpolated(level, known), source, guess=True)
    if level in expected:
        return Rate(expected[level], "run.expected_qps", guess=True)
    if expected:
        return Rate(interpolated(level, expected), "run.expected_qps, interpolated", guess=True)
    return None


def issue_rate(issued: int, level: int, issue_span_s: float, qps: float) -> float | None:
    """Requests/s that a closed loop issues once its streams are filled.

    The first `level` requests are issued at once; each further one follows a completion. So the
    rate is that of the further ones over the issue time, free of ramp and drain. A run that issued
    hardly more than its streams says nothing about it: then the completions over the whole run
    count, which understate the rate.

    Args:
        issued: Samples issued in the timed phase.
        level: Target concurrency.
        issue_span_s: First to last issue, seconds.
        qps: Completions per second over the whole run.
    """
    further = issued - level
    rate = further / issue_span_s if further >= level and issue_span_s > 0 else qps
    return rate if math.isfinite(rate) and rate > 0 else None


def issue_time_s(samples: int, level: int, qps: float) -> float:
    """Seconds from the first to the last issue of a closed loop; the inverse of `issue_rate`."""
    return max(0, samples - level) / qps


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


def ramp_passes(level: int, rows: int) -> int:
    """Passes until the steady state: `RAMP_REQUESTS` per concurrent stream, at least one."""
    return max(1, math.ceil(RAMP_REQUESTS * level / rows))


def size(rate: Rate | None, target: Target) -> Sizing:
    """Smallest whole number of passes whose issue time reaches the duration with the margin.

    The first `level` samples are issued at once and take no issue time. Without a rate: the fewest
    passes, to measure one. On a windowable basis at least the ramp-up passes and `WINDOW_PASSES`.
    """
    if target.rows is None:
        return Sizing(None, None, rate, None, Basis.MINIMUM, "the dataset's rows are not known")
    if rate is None:
        return _sized(target.min_passes, rate, target, Basis.MINIMUM, "the rate is not known")
    wanted_s = target.min_duration_ms / 1000 * target.margin * (GUESS_MARGIN if rate.guess else 1)
    wanted = wanted_s * rate.qps + target.level if wanted_s > 0 else 0.0
    by_duration = max(target.min_passes, math.ceil(wanted / target.rows))
    for_window = max(by_duration, ramp_passes(target.level, target.rows) + WINDOW_PASSES)
    window_s = for_window * target.rows / rate.qps
    basis = target.basis or (Basis.WINDOWABLE if window_s <= target.max_point_s else Basis.MINIMUM)
    if basis is Basis.WINDOWABLE:
        why = "minimum duration" if for_window == by_duration else "steady-state window"
        return _sized(for_window, rate, target, basis, why)
    why = "minimum duration" if by_duration > target.min_passes else "fewest passes"
    if target.basis is None:
        why += f"; a window would take {window_s / 3600:.1f} h"
    return _sized(by_duration, rate, target, basis, why)


def _sized(passes: int, rate: Rate | None, target: Target, basis: Basis, why: str) -> Sizing:
    assert target.rows is not None
    samples = passes * target.rows
    issue_s = issue_time_s(samples, target.level, rate.qps) if rate else None
    return Sizing(passes, samples, rate, issue_s, basis, why)
