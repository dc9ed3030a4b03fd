"""`pareto calibrate`: find out the rates of a campaign's points, and what it then costs."""

from __future__ import annotations

import os
import time
from pathlib import Path


def calibrate(file: Path, *, points: str | None = None) -> int:
    """Run a short pilot at every point whose rate is not known, then show what the campaign costs.

    Example: `pareto calibrate campaigns/rehearsal.yaml`

    Args:
        file: The campaign YAML.
        points: Only these points, by level or label, separated by commas.
    """
    from flows.choice import labels_of
    from flows.cli.drive import drive
    from flows.cli.show import estimate_lines, plan_table, print_table
    from flows.prepare import prepare

    ready = prepare(file, os.environ)
    session = drive(ready, labels_of(points, ready.plan), calibrate=True)
    costs = session.estimate([point.label for point in ready.plan.points])
    print_table(plan_table(session.sized_plan(), costs))
    for line in estimate_lines(costs, time.time()):
        print(line)
    return 0
