"""`pareto status`: where a campaign stands."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from flows.cli.options import AsJson

if TYPE_CHECKING:
    from core.estimate import Estimate
    from flows.cli.where import Where


def status(
    campaign: str | None = None, *, database: str | None = None, as_json: AsJson = False
) -> int:
    """Show a campaign's points, or all campaigns.

    Example: `pareto status campaigns/rehearsal.yaml`

    Args:
        campaign: A campaign file, or the name of a campaign on record; default: list them all.
        database: Database URL when a name is given.
        as_json: Print JSON instead of a table.
    """
    from core.errors import EXIT_INCOMPLETE
    from core.estimate import as_plain
    from core.overview import as_json as overview_json
    from core.overview import campaign_state, offline_note, point_rows
    from core.records import Wish
    from flows.cli.campaigns import list_campaigns
    from flows.cli.show import estimate_lines, print_curve
    from flows.cli.where import find, unattended_attempts

    if campaign is None:
        return list_campaigns(database=database, as_json=as_json)
    where = find(campaign, database)
    record = where.records.campaign(where.name)
    points = where.records.points_with_attempts(where.name)
    rows, now = point_rows(points), time.time()
    left = _left(where)
    unattended = [attempt for attempt, _ in unattended_attempts(where)]
    if as_json:
        plain = None if left is None else as_plain(left, now)
        labels = [attempt.label for attempt in unattended]
        print(json.dumps(overview_json(record, points, plain, labels), indent=2))
    else:
        print_curve(record.name, rows, rehearsal=record.rehearsal)
        if note := offline_note(rows, record.c_max):
            print(note)
        if left is not None:
            print(f"left: {len(left.points)} of {len(points)} points")
            print(*estimate_lines(left, now), sep="\n")
        if record.wish is Wish.PAUSE:
            print(f"paused before the next point; `pareto resume {record.name}` goes on")
        for attempt in unattended:
            print(
                f"unattended: {attempt.label} attempt {attempt.number} goes on under its guard,"
                " without an orchestrator; run the campaign again to take it in"
            )
    return 0 if campaign_state(points) == "valid" else EXIT_INCOMPLETE


def _left(where: Where) -> Estimate | None:
    """What the campaign still costs; None if it is complete, or can't be planned from here."""
    from core.errors import InputError, SetupError
    from flows.costs import costs_left
    from flows.prepare import prepared
    from tasks.campaign_file import load_recorded

    record = where.records.campaign(where.name)
    try:
        loaded = load_recorded(record.text, Path(record.source), os.environ)
        left = costs_left(prepared(loaded, os.environ), where.records)
    except (InputError, SetupError):  # its variables are not set here, or its dataset is gone
        return None
    return left if left.points else None
