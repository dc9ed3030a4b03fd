"""Disturbance: what the client reports with the orchestrator around it, and without."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from statistics import median
from typing import Any

from bench.figures import Figure, median_of
from bench.pairs import pairs_of
from bench.place import Place

#: Largest difference, processor time of a core while a client runs, and memory, MB.
OFF, CPU, MEMORY_MB = 0.01, 0.02, 250.0
#: Length of a point that the other targets speak of, s.
LONG_S = 600.0

Summaries = Mapping[str, Mapping[str, Any]]


def measure(place: Place) -> list[Figure]:
    """Ratios level by level, of the same configurations in turn."""
    pairs = pairs_of(place)
    figures = []
    for what in ("QPS", "TTFT P90"):
        ratios = [r for pair in pairs for r in _ratios(what, pair.measured, pair.bare)]
        noise = [
            abs(r - 1)
            for one, other in combinations(pairs, 2)
            for r in _ratios(what, one.bare, other.bare)
        ]
        note = f"two bare loops differ by {median(noise):.4f}" if noise else ""
        figures += [
            median_of(f"{what}, with over without", ratios, "×", note="level by level"),
            Figure(f"{what}, off by", abs(median(ratios) - 1), "of it", OFF, note=note),
        ]
    shares = {n: [p.watched.cpu_share(n, p.spans) for p in pairs] for n in pairs[0].watched.looks}
    at_real = [p.watched.cpu_share_at("all of it", p.spans, LONG_S) for p in pairs]
    memory = {n: [p.watched.most_memory_mb(n) for p in pairs] for n in shares}
    return [
        *figures,
        median_of(
            f"CPU while a client runs, points of {LONG_S:g} s",
            at_real,
            "cores",
            CPU,
            note="from what is spent once a point, and from then on",
        ),
        median_of(
            f"CPU while a client runs, points of {pairs[0].point_s:g} s",
            shares["all of it"],
            "cores",
            CPU,
        ),
        median_of("  of that: pareto", shares["pareto"], "cores"),
        median_of("  of that: the guard", shares["guard"], "cores"),
        median_of(
            "  of that: drawing",
            shares["picture"],
            "cores",
            note="once a point",
        ),
        median_of("memory, all of it", memory["all of it"], "MB", MEMORY_MB),
        median_of(
            "  of that: drawing", memory["picture"], "MB", note="for two seconds after a point"
        ),
    ]


def _ratios(what: str, one: Summaries, other: Summaries) -> list[float]:
    return [_value(what, one[label]) / _value(what, other[label]) for label in one]


def _value(what: str, summary: Mapping[str, Any]) -> float:
    if what == "QPS":
        return float(summary["qps"])
    return float(summary["ttft"]["percentiles"]["90.0"])
