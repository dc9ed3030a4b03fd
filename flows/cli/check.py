"""`pareto check`: everything that a run asks of its surroundings, without any load."""

from __future__ import annotations

import os
from pathlib import Path


def check(file: Path, *, disclosures: bool = False) -> int:
    """Check datasets, endpoint, client, configurations and room for a campaign; run nothing.

    Example: `pareto check campaigns/rehearsal.yaml`

    Args:
        file: The campaign YAML.
        disclosures: Check only what a submission must tell, and what the official checker would
            say of it: nothing is asked but files.
    """
    if disclosures:
        return _check_disclosures(file)
    from core.campaign import CUSTOM
    from core.identity import unverifiable
    from flows.ahead import look_ahead
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
    if ready.campaign.rehearsal is None and ready.campaign.benchmark != CUSTOM:
        told = look_ahead(ready.campaign, ready.plan)
        open_things = len(told.lacks) + len(told.remarks)
        hint = f"{open_things} things open: pareto check {file} --disclosures"
        print(f"submission {hint if open_things else 'disclosures complete'}")
    return 0


def _check_disclosures(file: Path) -> int:
    from core.errors import EXIT_INCOMPLETE
    from flows.ahead import look_ahead
    from flows.cli.show import print_table, remarks_table
    from flows.prepare import prepare

    ready = prepare(file, os.environ)
    found = look_ahead(ready.campaign, ready.plan)
    for lack in found.lacks:
        print(f"{'missing' if lack.severity == 'error' else 'advised':<10} {lack}")
    if found.remarks:
        print_table(remarks_table(found.remarks))
    if not (found.lacks or found.remarks):
        print("disclosures complete: the official checker accepts them")
    return EXIT_INCOMPLETE if found.has_errors else 0
