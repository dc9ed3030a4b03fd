"""`pareto run`: measure every point of a campaign that is not valid yet."""

from __future__ import annotations

import os
from pathlib import Path


def run(file: Path, *, points: str | None = None) -> int:
    """Run a campaign; the same command again continues it and never measures a valid point twice.

    Example: `pareto run campaigns/rehearsal.yaml --points 1,64`

    Args:
        file: The campaign YAML.
        points: Only these points, by level or label, separated by commas.
    """
    from flows.choice import labels_of
    from flows.cli.drive import drive
    from flows.prepare import prepare

    ready = prepare(file, os.environ)
    drive(ready, labels_of(points, ready.plan))
    return 0
