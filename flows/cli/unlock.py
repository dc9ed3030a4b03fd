"""`pareto unlock`: free an instance whose machine is gone."""

from __future__ import annotations

import os


def unlock(campaign: str, *, reason: str, database: str | None = None) -> int:
    """Free the instance that a campaign holds from a dead machine; refused while that shows life.

    Example: `pareto unlock llama31-8b-h200 --reason "node h200-3 lost its power supply"`

    Args:
        campaign: A campaign file, or the name of a campaign on record.
        reason: How you know that its client is gone, for the records.
        database: Database URL when a name is given.
    """
    from core.errors import InputError
    from flows.cli.where import find
    from flows.unlock import unlock as give_up
    from tasks.instance import LEASE_S

    if not reason.strip():
        raise InputError("--reason: say how you know that the client is gone; it goes on record")
    where = find(campaign, database)
    where.records.campaign(where.name)
    print(f"looking for signs of life for up to {LEASE_S:.0f} s", flush=True)
    done = give_up(where.records, where.name, reason.strip(), os.environ)
    if done.lease is not None:
        print(f"instance {done.lease.instance} is free; {done.lease.owner.host} held it")
    for attempt in done.attempts:
        print(f"{attempt.label} attempt {attempt.number} of {attempt.owner.host} is given up")
    if done.lease is None and not done.attempts:
        print(f"{where.name} holds no instance, and no other machine left an attempt of it")
    return 0
