"""`pareto retry`: run failed points again, and no others."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flows.prepare import Prepared


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
    from flows.cli.where import open_existing

    ready = _ready(campaign, database)
    name = ready.campaign.campaign
    wanted = labels(points, ready)
    # By the records that the run will write to, whichever database the name was looked up in.
    records = open_existing(ready.paths.database_url)
    found = records.points_with_attempts(name)
    states = {point.label: point.state for point in found}
    missed = [point.label for point in found if point.missed_accuracy]
    failed = {PointState.FAILED, PointState.INTERRUPTED}
    chosen = [label for label, state in states.items() if state in failed]
    if wanted is not None:
        others = [f"{label} is {states[label]}" for label in wanted if label not in chosen]
        if others:
            raise InputError(f"--points: only failed points are retried; {', '.join(others)}")
        chosen = wanted
    elif missed:
        chosen = [label for label in chosen if label not in missed]
        print(f"{', '.join(missed)} missed its accuracy: only --points tries that again")
    if not chosen:
        print(f"{name}: no failed point, nothing to retry")
        return 0
    valid = sum(state is PointState.VALID for state in states.values())
    print(f"{name}: retrying {', '.join(chosen)}; {valid} valid points stay as they are")
    drive(ready, chosen)
    return 0


def _ready(campaign: str, database: str | None) -> Prepared:
    """The campaign as its file states it now, or for a name as it was recorded."""
    from flows.cli.where import is_file, records_here
    from flows.prepare import prepare, prepared
    from tasks.campaign_file import load_recorded

    if is_file(campaign):
        return prepare(Path(campaign), os.environ)
    record = records_here(database).campaign(campaign)
    return prepared(load_recorded(record.text, Path(record.source), os.environ), os.environ)
