"""`pareto drift`: which parts of the system differ between the points of a curve."""

from __future__ import annotations

import json

from flows.cli.options import AsJson


def drift(campaign: str, *, database: str | None = None, as_json: AsJson = False) -> int:
    """Show points × parts of the fingerprint, what differs, and restarts; exit 1 at a difference.

    Example: `pareto drift campaigns/rehearsal.yaml`

    Args:
        campaign: A campaign file, or the name of a campaign on record.
        database: Database URL when a name is given.
        as_json: Print JSON instead of a table.
    """
    from core.errors import EXIT_INCOMPLETE
    from flows.cli.show import drift_table, print_table
    from flows.cli.where import find
    from flows.drift import drift_overview

    where = find(campaign, database)
    record = where.records.campaign(where.name)
    found = drift_overview(where.records, record)
    if as_json:
        print(json.dumps(found.as_json(), indent=2))
    else:
        print_table(drift_table(record, found.rows))
        for line in found.lines:
            print(line)
    return EXIT_INCOMPLETE if found.has_drift else 0
