"""`pareto check`: everything that a run asks of its surroundings, without any load."""

from __future__ import annotations

import os
from pathlib import Path


def check(file: Path) -> int:
    """Check datasets, endpoint, client, configurations and room for a campaign; run nothing.

    Example: `pareto check campaigns/rehearsal.yaml`

    Args:
        file: The campaign YAML.
    """
    from core.identity import unverifiable
    from flows.prepare import prepare
    from flows.session import preflight

    ready = prepare(file, os.environ)
    found = preflight(ready)
    urls = ", ".join(ready.campaign.endpoint.urls)
    scored = [f"{name} {count} rows" for name, count in found.accuracy_rows.items()]
    print(f"endpoint   {urls} serves {ready.campaign.model.name}")
    print(f"instance   {unverifiable(found.identity) or 'a restart would be seen'}")
    print(f"client     version {found.client.version}, every configuration accepted")
    print(f"datasets   {ready.plan.dataset_rows} performance rows; {', '.join(scored) or 'none'}")
    print(f"room       enough at {ready.paths.runs}")
    print(f"plan       {len(ready.plan.points)} points, legal")
    return 0
