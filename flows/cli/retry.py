"""`pareto retry`: run failed points again, and no others."""

from __future__ import annotations

import os
from pathlib import Path


def retry(campaign: str, *, points: str | None = None, database: str | None = None) -> int:
    """Run the failed points of a campaign again, after saying which; valid ones are never touched.

    Example: `pareto retry campaigns/rehearsal.yaml --points 64,128`

    Args:
        campaign: A campaign file, or the name of a campaign on record.
        points: Only these points, by level or label, separated by commas.
        database: Database URL when a name is given.
    """
    from core.errors import InputError
    from core.status import PointState
    from flows.cli.drive import drive, labels
    from flows.cli.where import find
    from flows.prepare import prepared
    from tasks.campaign_file import load_recorded

    where = find(campaign, database)
    record = where.records.campaign(where.name)
    ready = prepared(load_recorded(record.text, Path(record.source), os.environ), os.environ)
    wanted = labels(points, ready)
    states = {p.label: p.state for p in where.records.points_with_attempts(where.name)}
    failed = {PointState.FAILED, PointState.INTERRUPTED}
    chosen = [label for label, state in states.items() if state in failed]
    if wanted is not None:
        others = [f"{label} is {states[label]}" for label in wanted if label not in chosen]
        if others:
            raise InputError(f"--points: only failed points are retried; {', '.join(others)}")
        chosen = wanted
    if not chosen:
        print(f"{where.name}: no failed point, nothing to retry")
        return 0
    valid = sum(state is PointState.VALID for state in states.values())
    print(f"{where.name}: retrying {', '.join(chosen)}; {valid} valid points stay as they are")
    drive(ready, chosen)
    return 0
