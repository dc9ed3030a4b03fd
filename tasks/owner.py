"""Says which process this is, so that an attempt's owner can be told from a reused pid."""

from __future__ import annotations

import socket

from core.records import Owner
from tasks.processes import Identity, boot_id, is_running, own_identity


def this_process() -> Owner:
    """This process as the owner of an attempt."""
    own = own_identity()
    return Owner(
        host=socket.gethostname(), boot_id=boot_id(), pid=own.pid, start_time=own.start_time
    )


def is_here(owner: Owner) -> bool:
    """Whether the owner is, or was, a process of this boot of this machine; names may change."""
    return owner.boot_id == boot_id()


def was_here(owner: Owner) -> bool:
    """Whether the owner is of this machine, be it before a restart of it, which ended it."""
    return is_here(owner) or owner.host == socket.gethostname()


def owner_lives(owner: Owner) -> bool:
    """Whether the owner is a living process of this machine and boot."""
    return is_here(owner) and is_running(Identity(owner.pid, owner.start_time))
