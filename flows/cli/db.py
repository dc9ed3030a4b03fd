"""`pareto db upgrade`: bring a records database to this version's schema."""

from __future__ import annotations

import os


def upgrade(database: str | None = None) -> int:
    """Bring the records database to this version's schema; safe to run twice, and side by side.

    Example: `pareto db upgrade postgresql://pareto@db.example/pareto`

    Args:
        database: Database URL; default: `PARETO_DATABASE`, then the data folder here.
    """
    from core.records import upgrade as upgrade_records
    from flows.cli.where import DATABASE_ENV, url_here

    url = database or os.environ.get(DATABASE_ENV) or url_here()
    upgrade_records(url)
    print("the records database is up to date")
    return 0
