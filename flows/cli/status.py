"""`pareto status`: where a campaign stands."""

from __future__ import annotations

import json

from flows.cli.options import AsJson


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
    from core.overview import as_json as overview_json
    from core.overview import campaign_state, point_rows
    from core.records import Wish
    from flows.cli.show import curve_table, print_table
    from flows.cli.where import find, unattended_attempts

    if campaign is None:
        return _list(database, as_json=as_json)
    where = find(campaign, database)
    record = where.records.campaign(where.name)
    points = where.records.points_with_attempts(where.name)
    unattended = [attempt for attempt, _ in unattended_attempts(where)]
    if as_json:
        labels = [attempt.label for attempt in unattended]
        print(json.dumps(overview_json(record, points, labels), indent=2))
    else:
        print_table(curve_table(record.name, point_rows(points), rehearsal=record.rehearsal))
        if record.wish is Wish.PAUSE:
            print(f"paused before the next point; `pareto resume {record.name}` goes on")
        for attempt in unattended:
            print(
                f"unattended: {attempt.label} attempt {attempt.number} goes on under its guard,"
                " without an orchestrator; run the campaign again to take it in"
            )
    return 0 if campaign_state(points) == "valid" else EXIT_INCOMPLETE


def _list(database: str | None, *, as_json: bool) -> int:
    """List the newest campaigns on record."""
    from flows.cli.show import campaigns_table, print_table
    from flows.cli.where import records_here

    campaigns = records_here(database).campaigns()
    if as_json:
        print(json.dumps([{"campaign": c.name, "rehearsal": c.rehearsal} for c in campaigns]))
    else:
        print_table(campaigns_table(campaigns))
    return 0
