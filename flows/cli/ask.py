"""`pareto pause`, `resume` and `cancel`: ask the run of a campaign, wherever it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a command imports what it needs when it is called
    from flows.cli.where import Where


def pause(campaign: str, *, database: str | None = None) -> int:
    """Let the running point finish and start no other one until `pareto resume`.

    Example: `pareto pause campaigns/rehearsal.yaml`

    Args:
        campaign: A campaign file, or the name of a campaign on record.
        database: Database URL when a name is given.
    """
    from core.records import Wish
    from flows.cli.where import find

    where = find(campaign, database)
    _refuse_complete(where)
    where.records.ask(where.name, Wish.PAUSE)
    print(f"{where.name}: paused before its next point; `pareto resume {where.name}` goes on")
    return 0


def resume(campaign: str, *, database: str | None = None) -> int:
    """Let a paused campaign go on.

    Example: `pareto resume campaigns/rehearsal.yaml`

    Args:
        campaign: A campaign file, or the name of a campaign on record.
        database: Database URL when a name is given.
    """
    from core.errors import InputError
    from core.records import Wish
    from flows.cli.where import find

    where = find(campaign, database)
    if where.records.campaign(where.name).wish != Wish.PAUSE:
        raise InputError(f"{where.name} is not paused")
    record = where.records.ask(where.name, None)
    print(f"{where.name}: goes on; if nothing runs it any more: pareto run {record.source}")
    return 0


def cancel(campaign: str, *, database: str | None = None) -> int:
    """End the run of a campaign as Ctrl-C does: cleanly, its attempt recorded as interrupted.

    Example: `pareto cancel campaigns/rehearsal.yaml`

    Args:
        campaign: A campaign file, or the name of a campaign on record.
        database: Database URL when a name is given.
    """
    from core.records import Wish
    from flows.cli.where import find, unattended_attempts
    from tasks.supervise import request_stop

    where = find(campaign, database)
    _refuse_complete(where)
    where.records.ask(where.name, Wish.CANCEL)
    for attempt, paths in unattended_attempts(where):
        request_stop(paths.stop_request, "pareto cancel")
        print(f"{attempt.label} attempt {attempt.number} had no orchestrator; its client is ended")
    print(f"{where.name}: cancelled; run it again to continue")
    return 0


def _refuse_complete(where: Where) -> None:
    """Refuse to ask a campaign that has nothing left to run.

    Raises:
        InputError: every point is valid.
    """
    from core.errors import InputError
    from core.overview import campaign_state

    if campaign_state(where.records.points_with_attempts(where.name)) == "valid":
        raise InputError(f"{where.name} is complete: nothing of it is left to run")
