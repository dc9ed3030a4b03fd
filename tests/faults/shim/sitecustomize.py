"""Put before every program of a test: a clock that can be set, a file system without rename.

Only the wall clock is set, as an administrator does: monotonic clocks and the times of files are
the machine's.
"""

from __future__ import annotations

import errno
import os
import time

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


if "PARETO_TEST_CLOCK" in os.environ:
    time.time = _time
if "PARETO_TEST_NO_RENAME" in os.environ:
    os.replace = os.rename = _replace
