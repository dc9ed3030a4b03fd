"""Against a shell loop: the same client runs with all checks, fingerprints and hashes, and bare."""

from __future__ import annotations

from bench.figures import Figure, median_of
from bench.pairs import Pair, pairs_of
from bench.place import Place

#: Lengths of points that the cost is told for, s, and the wall time over that of the loop.
TARGETS = ((60.0, 1.02), (600.0, 1.005))


def measure(place: Place) -> list[Figure]:
    """Wall time of `pareto run`, start-up included, over that of the loop."""
    pairs = pairs_of(place)
    lengths = f"points of {pairs[0].point_s:g} s"
    return [
        median_of("pareto run", [pair.campaign_s for pair in pairs], "s", note=lengths),
        median_of("bare loop", [pair.loop_s for pair in pairs], "s", note=lengths),
        median_of("as measured", [pair.campaign_s / pair.loop_s for pair in pairs], "×"),
        median_of("costs more, whole command", [p.campaign_s - p.loop_s for p in pairs], "s"),
        median_of(
            "costs more, first client to last client",
            [pair.clients_s - pair.loop_s for pair in pairs],
            "s",
        ),
        *(
            median_of(
                f"wall time ratio at points of {point_s:g} s",
                [_ratio(pair, point_s) for pair in pairs],
                "×",
                target,
                note="from the seconds that it costs more",
            )
            for point_s, target in TARGETS
        ),
    ]


def _ratio(pair: Pair, point_s: float) -> float:
    """The ratio if every point were so long: what orchestration costs doesn't grow with it."""
    loop_s = pair.loop_s + pair.points * (point_s - pair.point_s)
    return (loop_s + pair.campaign_s - pair.loop_s) / loop_s
