"""`pareto show`: everything about one campaign that fits into a terminal."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from flows.cli.options import AsJson

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.records import CampaignRecord, PointRecord, Records


def show(campaign: str, *, database: str | None = None, as_json: AsJson = False) -> int:
    """Show what a campaign is, what came of it, and what to do about each point that is not valid.

    Example: `pareto show campaigns/rehearsal.yaml`

    Args:
        campaign: A campaign file, or the name of a campaign on record.
        database: Database URL when a name is given.
        as_json: Print JSON, every attempt with its findings included.
    """
    from core.overview import as_json as overview_json
    from core.overview import offline_note, point_rows
    from flows.cli.show import print_curve
    from flows.cli.where import find

    where = find(campaign, database)
    record = where.records.campaign(where.name)
    points = where.records.points_with_attempts(where.name)
    if as_json:
        attempts = [asdict(attempt) for point in points for attempt in point.attempts]
        print(json.dumps(overview_json(record, points) | {"attempts": attempts}, indent=2))
        return 0
    for name, value in _facts(where.records, record, points):
        print(f"{name:12} {value}")
    rows = point_rows(points)
    print_curve(record.name, rows, rehearsal=record.rehearsal)
    if note := offline_note(rows, record.c_max):
        print(note)
    for line in _to_do(points):
        print(line)
    return 0


def _facts(
    records: Records, record: CampaignRecord, points: Sequence[PointRecord]
) -> list[tuple[str, str]]:
    """What a campaign is, where it lies, and who measures it."""
    from core.overview import campaign_state
    from core.records.engine import shown
    from core.status import PointState
    from core.texts import time_text

    valid = sum(point.state is PointState.VALID for point in points)
    tries = sum(len(point.attempts) for point in points)
    held = next((lease for lease in records.leases() if lease.campaign == record.name), None)
    state = f"{campaign_state(points, record.wish)}, {valid} of {len(points)} points valid"
    seeds = record.seed_set
    facts = [
        ("state", f"{state}, {tries} attempts"),
        ("levels", f"{record.c_min} to {record.c_max}"),
        ("seed set", f"{seeds.id} for {', '.join(seeds.cohorts)}"),
        ("entered", time_text(record.created_at)),
        ("file", record.source),
        ("run folders", record.runs_folder),
        ("records", shown(records.url)),
    ]
    if held is not None:
        where = f" at {held.label}" if held.label else ""
        facts.append(
            (
                "measured by",
                f"process {held.owner.pid} on {held.owner.host}{where}, on instance"
                f" {held.instance} since {time_text(held.since)}",
            )
        )
    return facts


def _to_do(points: Sequence[PointRecord]) -> list[str]:
    """The findings of the last attempt at each point that is not valid, with what to do."""
    from core.findings import told
    from core.status import PointState

    lines = []
    for point in points:
        if point.state is not PointState.VALID and point.measurements:
            last = point.measurements[-1]
            where = f"{point.label} attempt {last.number}"
            lines += [f"{where}: {line}" for line in told(last.findings)]
    return lines
