"""Looks for room, before and during runs: for run folders and in the client's scratch space.

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


def check_room(runs: Path, needed_bytes: int, largest_bytes: int) -> None:
    """Refuse runs that don't fit into the runs folder or the client's scratch space.

    Args:
        runs: The runs folder; it need not exist yet.
        needed_bytes: Expected size of all run folders to come.
        largest_bytes: That of the largest: the client buffers one run at a time.

    Raises:
        SetupError: with the numbers.
    """
    lacking = lack_of_room(runs, needed_bytes, largest_bytes)
    if lacking is not None:
        raise SetupError(f"{lacking}; make room")


def lack_of_room(runs: Path, needed_bytes: int = 0, largest_bytes: int = 0) -> str | None:
    """What `check_room` would refuse, with the numbers; None: there is room."""
    places = [(runs, needed_bytes, "the run folders")]
    if SCRATCH.is_dir():
        places.append((SCRATCH, largest_bytes, "the client's event buffer"))
    for place, needed, why in places:
        free, wanted = free_bytes(place), max(needed, LEAST_FREE_BYTES)
        if free < wanted:
            return f"{place}: {_gb(free)} free, {_gb(wanted)} are needed for {why}"
    return None


def free_bytes(place: Path) -> int:
    """Free bytes of the file system that an absolute path lies on, or will."""
    existing = next(folder for folder in (place, *place.parents) if folder.exists())
    return shutil.disk_usage(existing).free


def _gb(count: int) -> str:
    return f"{count / 1e9:.2f} GB"
