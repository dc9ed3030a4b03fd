"""Gives up what a machine that is gone holds of a campaign: its lease, and its open attempts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.layout import instance_lock_path
from core.records import AttemptRecord, LeaseRecord, Records
from core.status import AttemptState
from tasks.instance import free
from tasks.owner import was_here


@dataclass(frozen=True)
class GivenUp:
    """What was given up."""

    lease: LeaseRecord | None
    attempts: tuple[AttemptRecord, ...]


def unlock(records: Records, name: str, reason: str, env: Mapping[str, str]) -> GivenUp:
    """Free the instance that a campaign holds, and end its attempts that another machine left.

    Attempts that this machine left stay open: running the campaign takes them in.

    Raises:
        InputError: the holder shows signs of life.
    """
    lease = next((held for held in records.leases() if held.campaign == name), None)
    if lease is not None:
        free(records, lease, instance_lock_path(lease.instance, env), reason)
    left = [a for a in records.open_attempts() if a.campaign == name and not was_here(a.owner)]
    ended = [
        records.change_state(
            attempt.id,
            AttemptState.INTERRUPTED,
            reason=f"given up with {attempt.owner.host}: {reason}",
        )
        for attempt in left
    ]
    return GivenUp(lease, tuple(ended))
