"""The estimate: told before a second campaign on a known system, against what it then takes."""

from __future__ import annotations

import os
from pathlib import Path

from bench.client import now_s
from bench.dead_time import POINT_S as SHORT_S
from bench.dead_time import replayable
from bench.figures import Figure
from bench.place import Place
from core.records import open_records
from flows.costs import costs_of
from flows.prepare import prepare
from flows.session import recorded_in

#: Share by which the estimate may be off.
OFF = 0.15
#: Length of a point, s: about that of the demo.
POINT_S = 8.0


def measure(place: Place) -> list[Figure]:
    """Run one curve twice, under two names in the same records; the second one is foretold."""
    if place.quick:  # the campaign that is replayed elsewhere is a first one too
        replayable(place)
        second = place.write("second", SHORT_S, records={"folder": "data-template"})
    else:
        same = {"folder": "data-first"}
        first = place.write("first", POINT_S, records=same)
        place.run("run", first, PREFECT_API_URL=place.prefect)
        second = place.write("second", POINT_S, records=same)
    expected_s = _expected_s(second)
    began_s = now_s()
    place.run("run", second, PREFECT_API_URL=place.prefect)
    whole_s = now_s() - began_s
    actual_s = _actual_s(second)
    return [
        Figure("estimated wall time of a second campaign", expected_s, "s"),
        Figure("actual, first preparation to last end", actual_s, "s"),
        Figure("actual, the whole command", whole_s, "s", note="start-up and preflight included"),
        Figure("estimate off by", abs(expected_s / actual_s - 1), "of it", OFF),
    ]


def _expected_s(file: Path) -> float:
    """What `pareto status` would tell of a campaign on record that was not begun."""
    ready = prepare(file, os.environ)
    records = open_records(ready.paths.database_url)
    recorded_in(records, ready)
    labels = [point.label for point in ready.plan.points]
    return costs_of(ready, records, {}, labels).wall_s.expected


def _actual_s(file: Path) -> float:
    ready = prepare(file, os.environ)
    points = open_records(ready.paths.database_url).points_with_attempts(ready.campaign.campaign)
    attempts = [attempt for point in points for attempt in point.attempts]
    ends = [attempt.ended_at for attempt in attempts if attempt.ended_at is not None]
    return max(ends) - min(attempt.created_at for attempt in attempts)
