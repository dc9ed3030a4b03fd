"""`pareto runs`: every attempt of a campaign, what came of it, and where its folder lies."""

from __future__ import annotations

import json
from dataclasses import asdict

from flows.cli.options import AsJson


def runs(campaign: str, *, database: str | None = None, as_json: AsJson = False) -> int:
    """List the attempts of a campaign with their run folders.

    Example: `pareto runs campaigns/rehearsal.yaml`

    Args:
        campaign: A campaign file, or the name of a campaign on record.
        database: Database URL when a name is given.
        as_json: Print JSON, findings and manifests included, instead of a table.
    """
    from core.findings import told
    from flows.cli.show import attempts_table, print_table
    from flows.cli.where import find

    where = find(campaign, database)
    record = where.records.campaign(where.name)
    points = where.records.points_with_attempts(where.name)
    attempts = [attempt for point in points for attempt in point.attempts]
    if as_json:
        print(json.dumps([asdict(attempt) for attempt in attempts], indent=2))
        return 0
    print_table(attempts_table(record, points))
    print(f"folders are relative to {record.runs_folder}")
    for attempt in attempts:
        for line in told(attempt.findings):
            print(f"{attempt.label} attempt {attempt.number}: {line}")
    return 0
