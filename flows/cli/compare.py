"""`pareto compare`: curves over each other."""

from __future__ import annotations

import os
from pathlib import Path


def compare(*campaigns: str, out: Path = Path("compare.html"), database: str | None = None) -> int:
    """Write one page with the curves of several campaigns, and print how they compare by region.

    Example: `pareto compare llama31-h200 llama31-b200 --out compare.html`

    Args:
        campaigns: Campaign files, or names of campaigns on record; the first is the reference.
        out: The HTML file.
        database: Database URL for names.
    """
    from core.drift import drift_lines
    from core.errors import InputError
    from flows.cli.files import target, write
    from flows.cli.show import print_table, ratios_table
    from flows.cli.where import find
    from flows.report import compare as compared
    from tasks.report import compare_page

    if len(set(campaigns)) < 2 or len(set(campaigns)) < len(campaigns):  # noqa: PLR2004 - a pair
        raise InputError("name two or more campaigns, each once: pareto compare A B")
    page = target(out, ".html")
    wheres = [find(campaign, database) for campaign in campaigns]
    found = compared([(where.records, where.name) for where in wheres], os.environ)
    print_table(ratios_table(found))
    first, *others = (curve.name for curve in found.curves)
    for name, differs in zip(others, found.differs, strict=True):
        lines = ["fingerprints not known"] if differs is None else drift_lines(differs)
        for line in lines or ["no difference in the fingerprints"]:
            print(f"{name} against {first}: {line}")
    write(page, compare_page(found).encode())
    return 0
