"""Clears away what a run of the tests leaves: a process of its own, so that it outlives that run.

`python tests/keeper.py FOLDER` waits until its standard input ends, which it does when the process
that runs the tests ends, however that comes about. Then it kills every process that carries the
run's mark in its environment, and removes the run's folder. Standard library only.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

#: Environment variable with the path of the run's folder: the mark.
FOLDER_ENV = "PARETO_TEST_SESSION"
#: Seconds between two looks, and looks that find nothing before it is done.
_POLL_S, _EMPTY_LOOKS = 0.1, 2


def main(folder: Path) -> None:
    """Wait for the end of the run, then clear away."""
    sys.stdin.buffer.read()
    empty_looks = 0
    while empty_looks < _EMPTY_LOOKS:
        left = marked(folder)
        empty_looks = 0 if left else empty_looks + 1
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_POLL_S)
    for path in folder.rglob("*"):
        if path.is_dir():
            path.chmod(0o700)  # finished run folders are read-only
    shutil.rmtree(folder, ignore_errors=True)


def marked(folder: Path) -> list[int]:
    """Living processes with the run's mark, this one left out."""
    mark = f"{FOLDER_ENV}={folder}".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it is gone, or another user's
            environment = (process / "environ").read_bytes().split(b"\0")
            if mark in environment and int(process.name) != os.getpid():
                found.append(int(process.name))
    return found


if __name__ == "__main__":
    main(Path(sys.argv[1]))
