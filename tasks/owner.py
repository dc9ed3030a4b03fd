"""Says which process this is, so that an attempt's owner can be told from a reused pid.

A machine's name is given twice, e.g. to the workers of one instance, and a boot ends. So a machine
also has a mark of its own, which its state folder keeps over restarts.
"""

from __future__ import annotations

import fcntl
import os
import socket
import uuid
from functools import cache
from pathlib import Path

from core.errors import SetupError
from core.layout import machine_mark_path
from core.records import Owner
from tasks.processes import Identity, boot_id, is_running, own_identity

#: Characters of the mark that stand behind a name.
_MARK_CHARS = 8


def machine() -> str:
    """This machine, also after a restart of it: its name and its mark.

    Raises:
        SetupError: its state folder keeps no mark.
    """
    return f"{socket.gethostname()}#{_mark(machine_mark_path(os.environ))}"


def this_process() -> Owner:
    """This process as the owner of an attempt; raises as `machine` does."""
    own = own_identity()
    return Owner(host=machine(), boot_id=boot_id(), pid=own.pid, start_time=own.start_time)


def is_here(owner: Owner) -> bool:
    """Whether the owner is, or was, a process of this boot of this machine; names may change."""
    return owner.boot_id == boot_id()


def was_here(owner: Owner) -> bool:
    """Whether the owner is of this machine, be it before a restart of it, which ended it."""
    return is_here(owner) or owner.host == machine()


def owner_lives(owner: Owner) -> bool:
    """Whether the owner is a living process of this machine and boot."""
    return is_here(owner) and is_running(Identity(owner.pid, owner.start_time))


@cache
def _mark(path: Path) -> str:
    """The mark that a file keeps; it is made when it is first asked for."""
    try:
        kept = path.read_text().strip() if path.exists() else ""
        return (kept or _made(path))[:_MARK_CHARS]
    except (OSError, ValueError) as problem:
        raise SetupError(
            f"{path}: can't keep what tells this machine from others of its name ({problem});"
            " name a folder that lasts with PARETO_STATE_DIR"
        ) from None


def _made(path: Path) -> str:
    """A new mark, or the one that another process made at the same moment."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        kept = file.read().strip()
        if not kept:
            kept = uuid.uuid4().hex
            file.write(f"{kept}\n")
            file.flush()
            os.fsync(file.fileno())
        return kept
