"""One measured series: exact totals, percentiles and a histogram, as the reference client has them.

Percentiles are observed values (the next lower rank), their keys decimal strings ("90.0"); the
histogram has 30 buckets of equal ratio from the smallest value to the largest, or to ten times
the smallest if that is more.
"""

from __future__ import annotations

import logging
import math
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Any

from tasks.rehearsal.early_stopping import CONFIDENCE, LOWEST_PERCENTILE, estimate

_LOG = logging.getLogger("inference_endpoint.async_utils.services.metrics_aggregator.registry")

#: The percentiles of every series, in the order of the files.
PERCENTILES = (99.9, 99.0, 97.0, 95.0, 90.0, 80.0, 75.0, 50.0, 25.0, 10.0, 5.0, 1.0)
#: Buckets of every histogram.
BUCKETS = 30
#: A histogram covers at least this ratio between its ends.
_MIN_SPAN = 10.0


@dataclass
class Series:
    """The values of one metric."""

    name: str
    #: Whether values are whole numbers; decides how an empty series is written.
    whole: bool = True
    #: Whether percentile estimates are reported.
    estimated: bool = False
    values: list[float] = field(default_factory=list)

    def stat(self, *, final: bool) -> dict[str, Any]:
        """Return the series as `final_snapshot.json` has it.

        Args:
            final: Whether the run ended in good order; only then are there estimates.
        """
        ordered = sorted(self.values)
        total = sum(self.values) if self.values else self._zero()
        stat: dict[str, Any] = {
            "type": "series",
            "name": self.name,
            "count": len(ordered),
            "total": total,
            "min": ordered[0] if ordered else 0,
            "max": ordered[-1] if ordered else 0,
            "sum_sq": self._sum_of_squares(),
            "percentiles": {str(rank): _percentile(ordered, rank) for rank in PERCENTILES},
        }
        if final and self.estimated:
            stat["early_stopping_percentiles"] = self._estimates(ordered)
        stat["histogram"] = histogram(ordered)
        return stat

    def _zero(self) -> float:
        return 0 if self.whole else 0.0

    def _sum_of_squares(self) -> float:
        if not self.values:
            return self._zero()
        return float(sum(value * value for value in self.values))

    def _estimates(self, ordered: list[float]) -> dict[str, float | None]:
        ranks = [rank for rank in PERCENTILES if rank >= LOWEST_PERCENTILE]
        found = {str(rank): estimate(ordered, rank) for rank in ranks}
        detail = "; ".join(
            f"p{rank}: estimate={one.value} empirical={one.empirical} n={one.count} "
            f"min_queries={one.min_count} discarded={one.discarded}"
            for rank, one in found.items()
        )
        _LOG.info("%s early-stopping detail (confidence %s): %s", self.name, CONFIDENCE, detail)
        return {
            rank: None if one.value is None else float(one.value) for rank, one in found.items()
        }


def _percentile(ordered: list[float], rank: float) -> float:
    return float(ordered[int(rank / 100 * (len(ordered) - 1))]) if ordered else 0.0


def histogram(ordered: list[float]) -> list[list[Any]]:
    """Return `[[low, high], count]` for each bucket of values in ascending order."""
    if not ordered:
        return []
    low = max(float(ordered[0]), 1.0)
    high = max(float(ordered[-1]), low * _MIN_SPAN)
    start = math.log(low)
    width = (math.log(high) - start) / BUCKETS
    edges = [math.exp(start + step * width) for step in range(BUCKETS + 1)]
    below = [0, *(bisect_left(ordered, edge) for edge in edges[1:-1]), len(ordered)]
    return [
        [[edges[bucket], edges[bucket + 1]], below[bucket + 1] - below[bucket]]
        for bucket in range(BUCKETS)
    ]


def metric(stat: dict[str, Any]) -> dict[str, Any]:
    """Return a series as `result_summary.json` has it: with mean, deviation and median."""
    estimates = stat.get("early_stopping_percentiles")
    extra = {} if estimates is None else {"early_stopping_percentiles": estimates}
    if not stat["count"]:
        return extra
    return {
        "total": stat["total"],
        "min": stat["min"],
        "max": stat["max"],
        "median": stat["percentiles"]["50.0"],
        "avg": stat["total"] / stat["count"],
        "std_dev": _deviation(stat),
        "percentiles": stat["percentiles"],
        **extra,
        "histogram": {
            "buckets": [bucket for bucket, _ in stat["histogram"]],
            "counts": [count for _, count in stat["histogram"]],
        },
    }


def _deviation(stat: dict[str, Any]) -> float:
    count = stat["count"]
    if count == 1:
        return 0.0
    spread = stat["sum_sq"] - stat["total"] * stat["total"] / count
    return math.sqrt(max(0.0, spread / (count - 1)))
