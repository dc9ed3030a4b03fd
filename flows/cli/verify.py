"""`pareto verify`: prove that run folders and records are as they were."""

from __future__ import annotations

import os
from pathlib import Path


def verify(
    campaign: str, *, deep: bool = False, judge: bool = False, database: str | None = None
) -> int:
    """Compare run folders with their manifests, and the systems of valid points; exit 1 if not so.

    Example: `pareto verify campaigns/rehearsal.yaml --deep`

    Args:
        campaign: A campaign file, or the name of a campaign on record.
        deep: Read every byte, instead of comparing names and sizes alone.
        judge: Read every byte, and validate every folder again by the rules of today.
        database: Database URL when a name is given.
    """
    from core.errors import EXIT_INCOMPLETE
    from core.texts import bytes_text
    from flows.cli.where import find
    from flows.verify import verify_campaign
    from tasks.campaign_file import load_recorded

    where = find(campaign, database)
    record = where.records.campaign(where.name)
    stated = load_recorded(record.text, Path(record.source), os.environ).campaign if judge else None
    found = verify_campaign(where.records, where.name, deep=deep, campaign=stated)
    for problem in found.problems:
        print(problem)
    how = "read whole" if deep or judge else "by names and sizes; --deep reads them"
    print(
        f"{where.name}: {found.folders} run folders, {found.files} files,"
        f" {bytes_text(found.total_bytes)} {how}: {len(found.problems) or 'no'} problems"
    )
    return EXIT_INCOMPLETE if found.problems else 0
