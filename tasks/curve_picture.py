"""The curve so far as a picture, drawn by a process of its own.

matplotlib takes 50 MB, and half a second of the interpreter that would have to take care of the
next client. So `python -m tasks.curve_picture` draws the curve that it is told, at low priority,
and ends.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict

from core.curve import Curve
from tasks.bounded import Bounds, UnreadableError, run_bounded
from tasks.processes import IMPORT_ROOT

#: Time and bytes for a picture; one of 32 points is about 60 kB.
BOUNDS = Bounds(timeout_s=60.0, max_bytes=8 << 20)
#: How much it steps back behind a client.
_NICENESS = 10


def curve_picture(curve: Curve) -> bytes:
    """A curve as PNG.

    Raises:
        UnreadableError: it can't be drawn, or not in time.
    """
    command, told = [sys.executable, "-m", "tasks.curve_picture"], json.dumps(asdict(curve))
    try:
        ended = run_bounded(command, os.environ, BOUNDS, cwd=IMPORT_ROOT, told=told.encode())
    except OSError as problem:
        raise UnreadableError(str(problem)) from None
    if ended.code != 0:
        raise UnreadableError(ended.last_line)
    return ended.printed


def main() -> None:
    """Print the picture of the curve that stands on the standard input."""
    os.nice(_NICENESS)  # first: most of the work is to load what draws
    from tasks.chart import curve_png  # noqa: PLC0415 - the orchestrator is to do without

    curve = Curve(**json.load(sys.stdin))
    sys.stdout.buffer.write(curve_png(curve, title=curve.name, rehearsal=curve.rehearsal))


if __name__ == "__main__":
    main()
