"""`pareto plan`: what a campaign will measure, and what each point is for."""

from __future__ import annotations

import json
import os
from pathlib import Path

from flows.cli.options import AsJson


def plan(file: Path, *, as_json: AsJson = False) -> int:
    """Show the points that a campaign file leads to; touch neither endpoint nor database.

    Example: `pareto plan campaigns/rehearsal.yaml`

    Args:
        file: The campaign YAML.
        as_json: Print JSON instead of a table.
    """
    from core.plan import as_plain
    from flows.cli.show import plan_table, print_table
    from flows.prepare import prepare

    ready = prepare(file, os.environ)
    if as_json:
        print(json.dumps(as_plain(ready.plan), indent=2))
        return 0
    print_table(plan_table(ready.plan))
    for warning in ready.plan.warnings:
        print(f"note: {warning}")
    return 0
