"""`pareto rebase`: begin a curve anew on a system that changed."""

from __future__ import annotations

from pathlib import Path


def rebase(campaign: str, *, reason: str, database: str | None = None) -> int:
    """Mark the points so far as not of this curve; they are kept, and measured again by `run`.

    Example: `pareto rebase campaigns/rehearsal.yaml --reason "new driver, the old one was broken"`

    Args:
        campaign: A campaign file, or the name of a campaign on record.
        reason: Why, for the records.
        database: Database URL when a name is given.
    """
    from core.errors import InputError
    from core.layout import campaign_lock_path
    from core.status import PointState
    from flows.cli.where import find
    from tasks.lock import exclusive

    if not reason.strip():
        raise InputError("--reason: say why the curve is begun anew; it goes on record")
    where = find(campaign, database)
    record = where.records.campaign(where.name)
    lock = campaign_lock_path(Path(record.runs_folder), where.name)
    with exclusive(lock, f"campaign {where.name}"):
        points = where.records.points_with_attempts(where.name)
        measured = [point.label for point in points if point.state is PointState.VALID]
        now = where.records.rebase(where.name, reason.strip())
    print(f"{where.name}: baseline {now.baseline} begins with the next valid point")
    print(f"no longer of this curve, and kept: {', '.join(measured) or 'no valid point'}")
    return 0
