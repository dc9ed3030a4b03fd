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
    from core.records import open_existing
    from flows.choice import labels_of, to_retry
    from flows.cli.drive import drive

    ready = _ready(campaign, database)
    name = ready.campaign.campaign
    wanted = labels_of(points, ready.plan)
    # By the records that the run will write to, whichever database the name was looked up in.
    chosen = to_retry(open_existing(ready.paths.database_url), name, wanted)
    if chosen.missed:
        print(f"{', '.join(chosen.missed)} missed its accuracy: only --points tries that again")
    if not chosen.labels:
        print(f"{name}: no failed point, nothing to retry")
        return 0
    print(
        f"{name}: retrying {', '.join(chosen.labels)}; {chosen.valid} valid points stay as they are"
    )
    drive(ready, chosen.labels)
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
