"""`pareto list`: the campaigns on record."""

from __future__ import annotations

import json

from flows.cli.options import AsJson


def list_campaigns(*, page: int = 1, database: str | None = None, as_json: AsJson = False) -> int:
    """List the campaigns on record, newest first, fifty a page.

    Example: `pareto list --page 2`

    Args:
        page: Page of the list.
        database: Database URL; default: `PARETO_DATABASE`, then the data folder here.
        as_json: Print JSON instead of a table.
    """
    from core.errors import InputError
    from core.overview import state_word
    from core.status import PointState
    from flows.cli.show import campaigns_table, print_table
    from flows.cli.where import records_here

    records = records_here(database)
    pages = records.pages()
    if not 1 <= page <= pages:
        raise InputError(f"--page: {page}; there are pages 1 to {pages}")
    campaigns = records.listing(page)
    if as_json:
        told = [
            {
                "campaign": listed.campaign.name,
                "rehearsal": listed.campaign.rehearsal,
                "state": state_word(listed.states, listed.campaign.wish),
                "points": len(listed.states),
                "valid": listed.states.count(PointState.VALID),
            }
            for listed in campaigns
        ]
        print(json.dumps(told))
        return 0
    held = {lease.campaign: lease.instance for lease in records.leases()}
    print_table(campaigns_table(campaigns, held))
    if page < pages:
        print(f"page {page} of {pages}; `pareto list --page {page + 1}` shows older ones")
    return 0
