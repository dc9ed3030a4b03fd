"""Put before every program of a test: another clock, machine, or a file system without rename.

Only the wall clock is set, as an administrator does: monotonic clocks and the times of files are
the machine's.
"""

from __future__ import annotations

import errno
import os
import socket
import time
from pathlib import Path

_real_time = time.time
_real_replace = os.replace


def _time() -> float:
    try:
        with open(os.environ["PARETO_TEST_CLOCK"]) as file:
            return _real_time() + float(file.read() or 0)
    except OSError:
        return _real_time()


def _replace(source, target, **options):
    if os.fspath(target).startswith(os.environ["PARETO_TEST_NO_RENAME"]):
        raise OSError(errno.EPERM, "Operation not permitted", os.fspath(target))
    return _real_replace(source, target, **options)


_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_real_read_text = Path.read_text


def _read_text(path, *arguments, **options):
    if path == _BOOT_ID:
        return f"boot of {os.environ['PARETO_TEST_MACHINE']}\n"
    return _real_read_text(path, *arguments, **options)


if "PARETO_TEST_MACHINE" in os.environ:
    socket.gethostname = lambda: os.environ["PARETO_TEST_MACHINE"]
    Path.read_text = _read_text
if "PARETO_TEST_CLOCK" in os.environ:
    time.time = _time
if "PARETO_TEST_NO_RENAME" in os.environ:
    os.replace = os.rename = _replace
