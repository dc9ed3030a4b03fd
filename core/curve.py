"""A curve as plain values (§4): a row per valid point, steps without interpolation, frontier.

Nothing is interpolated: between two points the curve has the throughput of the faster-answering
one. Who draws a curve needs this module and none of what made it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: A valid point; `core.curve_table` has its columns. None: not known, or it does not apply.
Row = Mapping[str, Any]
#: Where a point is: interactivity and system throughput, both in tokens/s; None: it has none.
Position = tuple[float | None, float | None]
#: Standing of a point: no other has both quantities at least as high, but for those with the very
#: same two (tied); another has (dominated); it has no interactivity (a dedicated Offline run).
FRONTIER, TIED, DOMINATED, OFFLINE = "frontier", "tied", "dominated", "offline"


@dataclass(frozen=True)
class Curve:
    """The valid points of a campaign's present baseline, and what is to be said of them."""

    name: str
    rehearsal: bool
    agentic: bool
    rows: Sequence[Row]  # by level
    regions: Mapping[str, str]  # every region in its order, and its name as people read it
    offline_tps: float | None  # throughput of the Offline result; None: there is none yet
    notes: Sequence[str] = ()

    @property
    def placed(self) -> list[Row]:
        """The rows that have a place on the curve, by rising interactivity."""
        found = [row for row in self.rows if row["interactivity"] is not None]
        return sorted(found, key=lambda row: (row["interactivity"], row["system_tps"] or 0.0))


def standings(places: Sequence[Position]) -> list[str]:
    """The standing of each point."""
    known = [(x, y) for x, y in places if x is not None and y is not None]
    return [OFFLINE if x is None or y is None else _standing((x, y), known) for x, y in places]


def steps(rows: Iterable[Row]) -> list[tuple[float, float]]:
    """The step function's corners, interactivity and throughput, by rising interactivity.

    Up to and with the interactivity of a corner, from that of the corner before it, the system
    delivers the corner's throughput. Beyond the last one there is nothing.
    """
    best = [row for row in rows if row["standing"] in (FRONTIER, TIED)]
    return sorted({(row["interactivity"], row["system_tps"]) for row in best})


def throughput_at(corners: Iterable[tuple[float, float]], interactivity: float) -> float | None:
    """What the step function has at an interactivity; None: no point answers that fast."""
    return next((tps for x, tps in corners if x >= interactivity), None)


def best_in(curve: Curve, region: str) -> Position:
    """Highest interactivity and highest throughput in a region; None where it has no point."""
    inside = [row for row in curve.placed if row["region"] == region]
    return highest(inside, "interactivity"), highest(inside, "system_tps")


def highest(rows: Iterable[Row], column: str) -> float | None:
    """The highest known value of a column."""
    return max((row[column] for row in rows if row[column] is not None), default=None)


def _standing(place: tuple[float, float], places: Sequence[tuple[float, float]]) -> str:
    x, y = place
    if any(other[0] >= x and other[1] >= y and other != place for other in places):
        return DOMINATED
    return TIED if places.count(place) > 1 else FRONTIER
