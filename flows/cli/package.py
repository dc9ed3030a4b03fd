"""`pareto package`: from a finished campaign to run folders, a tree, and the official verdict."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # they load the records
    from flows.package import Package


def package(file: Path, *, out: Path, strict: bool = False, test_data: bool = False) -> int:
    """Package the valid points of a campaign, and let the official checker judge the package.

    Exit code 0 only if the checker has no error; nothing is uploaded.

    Example: `pareto package llama31-h200.yaml --out package --strict`

    Args:
        file: The campaign YAML, with its disclosures.
        out: Where the package goes: a folder that is empty or not there yet.
        strict: Exit 1 on warnings too.
        test_data: Package a rehearsal, marked as test data that can't be uploaded.
    """
    from core.errors import EXIT_INCOMPLETE
    from core.records import open_existing
    from flows.package import package as make
    from flows.prepare import prepare

    ready = prepare(file, os.environ)
    records = open_existing(ready.paths.database_url)
    made = make(ready, records, Path(os.path.abspath(out)), test_data=test_data)
    passes = made.passes(strict=strict)
    _show(made)
    if passes and made.commands:
        print("to upload it, run these yourself (with PRISM_USER_API_TOKEN set):")
        print(*(f"  {command}" for command in made.commands), sep="\n")
    return 0 if passes else EXIT_INCOMPLETE


def _show(made: Package) -> None:
    from flows.cli.show import print_table, remarks_table

    if made.remarks:
        print_table(remarks_table(made.remarks))
    for line in made.left_out:
        print(f"left out   {line}")
    if made.without_dashboard:
        print(f"dashboard  none: {made.without_dashboard}")
    print(
        f"package    {made.folder}: {len(made.labels)} points, {made.count('error')} errors,"
        f" {made.count('warning')} warnings"
    )
