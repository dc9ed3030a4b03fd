"""The curve so far as a picture, drawn by a process of its own.

pandas and matplotlib take 110 MB, and a second of the interpreter that would have to take care of
the next client. So `python -m tasks.curve_picture CAMPAIGN` draws, at low priority, and ends.
"""

from __future__ import annotations

import os
import sys

from core.records import Records, open_records
from tasks.bounded import Bounds, UnreadableError, run_bounded
from tasks.processes import IMPORT_ROOT

#: Time and bytes for a picture; one of 32 points is about 60 kB.
BOUNDS = Bounds(timeout_s=60.0, max_bytes=8 << 20)
#: Variable that tells the process where the records are: passwords are no arguments.
_URL_ENV = "PARETO_PICTURE_OF"
#: How much it steps back behind a client.
_NICENESS = 10


def curve_picture(records: Records, name: str) -> bytes:
    """A campaign's curve as PNG, by what is on record now.

    Raises:
        UnreadableError: it can't be drawn, or not in time.
    """
    command = [sys.executable, "-m", "tasks.curve_picture", name]
    env = {**os.environ, _URL_ENV: records.url.render_as_string(hide_password=False)}
    ended = run_bounded(command, env, BOUNDS, cwd=IMPORT_ROOT)
    if ended.code != 0:
        raise UnreadableError(ended.last_line)
    return ended.printed


def main() -> None:
    """Print the picture."""
    from core.curve import make_curve  # noqa: PLC0415 - the orchestrator is to do without
    from tasks.chart import curve_png  # noqa: PLC0415 - likewise

    os.nice(_NICENESS)
    records, name = open_records(os.environ[_URL_ENV]), sys.argv[1]
    campaign = records.campaign(name)
    curve = make_curve(campaign, records.points_with_attempts(name))
    sys.stdout.buffer.write(curve_png(curve, title=name, rehearsal=campaign.rehearsal))


if __name__ == "__main__":
    main()
