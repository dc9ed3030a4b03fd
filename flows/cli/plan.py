"""`pareto plan`: what a campaign will measure, and what each point is for."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from flows.cli.options import AsJson


def plan(file: Path, *, as_json: AsJson = False) -> int:
    """Show the points that a campaign file leads to; touch neither endpoint nor database.

    Example: `pareto plan campaigns/rehearsal.yaml`

    Args:
        file: The campaign YAML.
        as_json: Print JSON instead of a table.
    """
    from core.estimate import as_plain as estimate_plain
    from core.estimate import estimate, first_costs, scored_samples
    from core.pilot import pilot_note
    from core.plan import as_plain
    from flows.cli.show import estimate_lines, plan_table, print_table
    from flows.prepare import prepare

    ready = prepare(file, os.environ)
    scored = scored_samples(ready.campaign, {})
    costs = estimate(ready.campaign, ready.plan, first_costs(ready.campaign), scored=scored)
    if as_json:
        told = {"estimate": estimate_plain(costs, time.time())}
        print(json.dumps(as_plain(ready.plan) | told, indent=2))
        return 0
    print_table(plan_table(ready.plan, costs))
    for line in estimate_lines(costs, time.time()):
        print(line)
    no_pilots = pilot_note(ready.campaign)
    for warning in [*ready.plan.warnings, *([no_pilots] if no_pilots else [])]:
        print(f"note: {warning}")
    return 0
