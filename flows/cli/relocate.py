"""`pareto relocate`: tell the records where moved run folders lie now."""

from __future__ import annotations

from pathlib import Path


def relocate(campaign: str, folder: Path, *, database: str | None = None) -> int:
    """Record the new place of a campaign's run folders, once they are all found there.

    Example: `pareto relocate llama31-8b-h200 /archive/runs`

    Args:
        campaign: A campaign file, or the name of a campaign on record.
        folder: The runs folder, which has the campaign's own folder in it.
        database: Database URL when a name is given.
    """
    from core.errors import InputError
    from flows.cli.where import find
    from flows.verify import verify_campaign

    where = find(campaign, database)
    runs = folder.absolute()
    if not (runs / where.name).is_dir():
        raise InputError(f"{runs} holds no folder {where.name}; name the runs folder that has it")
    problems = verify_campaign(where.records, where.name, runs=runs).problems
    if problems:
        raise InputError(
            "\n  ".join([f"{runs} has not what {where.name} recorded:", *problems])
            + "\nmove the folders whole, then relocate; nothing was changed"
        )
    before = where.records.campaign(where.name).runs_folder
    where.records.relocate(where.name, runs)
    print(f"{where.name}: {before} → {runs}; put it into records.runs to run the campaign on")
    return 0
