"""Looks for room, before and during a run: for the run folder and in the client's scratch space.

The client buffers its events in shared memory until the end of a run, so a full `/dev/shm` ends a
run although the disk is ample (mlcommons/endpoints #426).
"""

from __future__ import annotations

import shutil
from pathlib import Path

from core.errors import SetupError

#: Where the client buffers its events while it runs, if it exists.
SCRATCH = Path("/dev/shm")  # noqa: S108 - the client's own fixed place
#: Least free space of a file system that a run may start or go on with, bytes; a container
#: has 64 MiB of shared memory unless told otherwise, and never all of it free.
LEAST_FREE_BYTES = 32 * 1024 * 1024


def check_room(runs: Path, needed_bytes: int) -> None:
    """Refuse a run that fits neither the runs folder nor the client's scratch space.

    Args:
        runs: The runs folder; it need not exist yet.
        needed_bytes: Expected size of the run's events.

    Raises:
        SetupError: with the numbers.
    """
    lacking = lack_of_room(runs, needed_bytes)
    if lacking is not None:
        raise SetupError(lacking)


def lack_of_room(runs: Path, needed_bytes: int = 0) -> str | None:
    """Which place has too little room for a run that starts, or goes on; None if none."""
    places = [(runs, "the run folder")]
    if SCRATCH.is_dir():
        places.append((SCRATCH, "the client's event buffer"))
    wanted = max(needed_bytes, LEAST_FREE_BYTES)
    for place, why in places:
        free = free_bytes(place)
        if free < wanted:
            return f"{place}: {_gb(free)} free, {_gb(wanted)} are needed for {why}; make room"
    return None


def free_bytes(place: Path) -> int:
    """Free bytes of the file system that an absolute path lies on, or will."""
    existing = next(folder for folder in (place, *place.parents) if folder.exists())
    return shutil.disk_usage(existing).free


def _gb(count: int) -> str:
    return f"{count / 1e9:.2f} GB"
