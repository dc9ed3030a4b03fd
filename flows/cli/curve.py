"""`pareto curve`: the curve as a table for programs."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def curve(campaign: str, *, out: Path | None = None, database: str | None = None) -> int:
    """Write the curve as a table: one row per valid point with the official quantities.

    Example: `pareto curve campaigns/rehearsal.yaml --out curve.parquet`

    Args:
        campaign: A campaign file, or the name of a campaign on record.
        out: A file that ends with .csv, .parquet or .json; default: print CSV.
        database: Database URL when a name is given.
    """
    from core.curve_table import export
    from flows.cli.files import target, write
    from flows.cli.where import find
    from flows.report import find_curve

    if out is not None:
        target(out, ".csv", ".parquet", ".json")
    where = find(campaign, database)
    found = find_curve(where.records, where.name, os.environ)
    for note in (*found.notes, *found.curve.notes):
        print(f"note: {note}", file=sys.stderr)
    if out is None:
        print(export(found.curve, ".csv").decode(), end="")
    else:
        write(out, export(found.curve, out.suffix.lower()))
    return 0
