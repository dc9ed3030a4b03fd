"""Dead time: from one client's exit to the next one's start, and where it goes.

Clients replay run folders of an earlier campaign, made up to 200 MB, so that nothing but the gaps
takes time.
"""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

from bench.figures import Figure, median_of, worst_of
from bench.place import Place, stamps_of

#: Size of a run folder, MB.
FOLDER_MB = 200
#: Targets: seconds between two clients, and the share of a 600 s point that is never exceeded.
MEDIAN_S, WORST_S = 1.5, 6.0
#: Length of the points that are replayed, s.
POINT_S = 2.0
#: The processor time of the main thread among the parts: a busy machine doesn't change that.
CPU = "processor time"


def measure(place: Place) -> list[Figure]:
    """Replay campaigns and look at the gaps."""
    template = replayable(place)
    gaps_s: list[float] = []
    shares: dict[str, list[float]] = defaultdict(list)
    for number in range(1 if place.quick else 3):
        found, parts = _replay(place, f"gaps-{number}", template, FOLDER_MB)
        gaps_s += found
        for what, seconds in parts.items():
            shares[what] += seconds
    empty, small = _replay(place, "gaps-small", template, 0)
    steps = sorted(shares.items(), key=lambda item: -statistics.median(item[1]))
    return [
        median_of("dead time, median", gaps_s, "s", MEDIAN_S, note=f"folders of {FOLDER_MB} MB"),
        worst_of("dead time, worst", gaps_s, "s", WORST_S, note="1 % of a 600 s point"),
        *(median_of(f"  of that: {what}", seconds, "s") for what, seconds in steps),
        median_of("dead time, small folders", empty, "s"),
        median_of("  processor time in that", small[CPU], "s", note="of the main thread"),
    ]


def replayable(place: Place) -> Path:
    """Run folders of a whole campaign, measured once."""
    folder = place.runs("template")
    if not folder.exists():
        file = place.write("template", POINT_S)
        place.run("run", file, PREFECT_API_URL=place.prefect)
    return folder


def _replay(
    place: Place, name: str, template: Path, pad_mb: int
) -> tuple[list[float], dict[str, list[float]]]:
    """The gaps of one replayed campaign, and the seconds of each step in each gap."""
    stamps, segments = place.folder / f"{name}.stamps", place.folder / f"{name}.segments"
    file = place.write(name, POINT_S)
    place.run(
        "run",
        file,
        module="bench.timed",
        PREFECT_API_URL=place.prefect,
        PARETO_BENCH_REPLAY=str(template),
        PARETO_BENCH_PAD_MB=str(pad_mb),
        PARETO_BENCH_STAMPS=str(stamps),
        PARETO_BENCH_SEGMENTS=str(segments),
    )
    clients = stamps_of(stamps)
    pairs = [(one["ended_s"], other["began_s"]) for one, other in pairwise(clients)]
    lines = [json.loads(line) for line in segments.read_text().splitlines()]
    parts: dict[str, list[float]] = defaultdict(list)
    for began_s, ended_s in pairs:
        inside: dict[str, float] = defaultdict(float)
        for what, start_s, end_s, cpu_s in lines:
            seconds = max(0.0, min(end_s, ended_s) - max(start_s, began_s))
            inside[what] += seconds
            inside[CPU] += cpu_s * seconds / (end_s - start_s)
        for what in {CPU, *(what for what, *_ in lines)}:
            parts[what].append(inside[what])
    return [ended_s - began_s for began_s, ended_s in pairs], parts
