"""Keeps a process running until it is asked to stop: started again, ever more slowly."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

#: Seconds between two looks at the process.
LOOK_S = 1.0
#: Seconds before the first restart; doubled up to the longest; forgotten after a good run.
FIRST_PAUSE_S, LONGEST_PAUSE_S, GOOD_RUN_S = 1.0, 60.0, 120.0
#: Seconds that it gets to end; the campaigns that it runs end their clients in that time.
STOP_TIMEOUT_S = 60.0


def keep_running(
    module: str,
    log: Path,
    stop: threading.Event,
    tell: Callable[[str], None],
    look: Callable[[], None] = lambda: None,
    alive: Path | None = None,
) -> None:
    """Run `python -m module` until `stop` is set, again and again.

    Args:
        module: The module.
        log: File for what it prints.
        stop: Set when it is to end.
        tell: Takes a line when it ended by itself.
        look: Called between looks, e.g. to care for what it depends on.
        alive: Touched at each look that finds it running, for health checks.
    """
    pause_s = FIRST_PAUSE_S
    while not stop.is_set():
        began_s = time.monotonic()
        process = _start([sys.executable, "-m", module], log)
        try:
            while process.poll() is None and not stop.wait(LOOK_S):
                look()
                if alive is not None:
                    alive.touch()
        finally:
            _end(process)
        if stop.is_set():
            return
        if time.monotonic() - began_s > GOOD_RUN_S:
            pause_s = FIRST_PAUSE_S
        tell(f"{module} ended with code {process.returncode}; again in {pause_s:g} s, see {log}")
        stop.wait(pause_s)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


def _start(command: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    """Start it in a session of its own: a Ctrl-C in the terminal is ours to hand on."""
    with log.open("ab") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
